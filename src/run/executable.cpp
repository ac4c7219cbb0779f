#include "run/executable.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <sstream>

#include "comm/host/hosts.hpp"
#include "comm/watch/agreement.hpp"
#include "comm/watch/failure.hpp"
#include "run/steps.hpp"
#include "run/watch.hpp"

namespace tessera {

std::string call_of(const Instruction& i) {
  return (i.call ? std::string(i.call)
          : i.op ? i.op->name
                 : std::string("a result")) +
         " at " + site(i.where);
}
std::string label_of(const Instruction& i) {
  const auto kind = collective_kind(i);
  return (kind.empty() ? "" : kind + " for ") + call_of(i);
}

StepPtr bind(const BindContext& context, const Instruction& i) {
  return std::visit(
      overloaded{[&](const KernelCall& kernel) { return bind_kernel(context, i, kernel); },
                 [&](const FusedChain& chain) { return bind_chain(context, i, chain); },
                 [&](const Bitcast&) { return bind_alias(context, i); },
                 [&](const Move& move) {
                   return move.step.kind == StepKind::all_gather ? bind_all_gather(context, i, move.step)
                                                                 : bind_reshard(context, i);
                 },
                 [&](const AllReduce& reduction) { return bind_all_reduce(context, i, reduction); },
                 [&](const ReduceScatter& reduction) { return bind_reduce_scatter(context, i, reduction); },
                 [&](const RemapMove& remap) { return bind_remap(context, i, remap); },
                 [&](const CommunicatingCall& call) { return bind_communicating_call(context, i, call); },
                 [&](const ControlFlow& flow) { return bind_control(context, i, *flow.inside); }},
      i.what);
}

namespace {
// A sum that saturates instead of overflowing, so that an impossible size remains impossible.
std::int64_t saturated_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}
}  // namespace

std::int64_t bytes_at_least(const Program& program, int me) {
  std::vector<bool> counts(program.values.size(), true);
  for (const int v : program.inputs) counts[v] = false;
  const auto bytes_of = [&](int v) {
    const auto& value = program.values[v];
    if (!counts[v] || value.layout.mesh().position(me) < 0) return std::int64_t{0};
    return box_elements(value.layout.local_box(value.type.shape, me)) *
           static_cast<std::int64_t>(itemsize(value.type.dtype));
  };
  std::int64_t most = 0;
  for (const auto& i : program.instructions) {
    std::int64_t bytes = 0;
    if (!is_stored(i)) continue;
    for (const int v : i.outputs) bytes = saturated_sum(bytes, bytes_of(v));
    most = std::max(most, bytes);
  }
  return most;
}

Executable::Executable(Program program, int me) : program_(std::move(program)) {
  bind_values(me);
  bind_steps(me);
  find_last_uses();
  plan_overlap();
  count_memory();
}

void Executable::bind_values(int me) {
  values_.reserve(program_.values.size());
  for (const auto& value : program_.values) {
    LocalValue local;
    local.holds = value.layout.mesh().position(me) >= 0;
    local.tile = {nullptr, value.type.dtype,
                  local.holds ? value.layout.local_box(value.type.shape, me) : Box(value.type.shape.size()),
                  value.type.shape};
    local.bytes = local.holds ? local.tile.bytes() : 0;
    values_.push_back(std::move(local));
  }
}

// The devices of the program's values. A constant that every process holds adds no ranks.
std::set<int> Executable::devices_of_values() const {
  std::vector<bool> passes_by(program_.values.size());
  for (const int v : program_.inputs) passes_by[v] = program_.values[v].everywhere;
  if (std::find(passes_by.begin(), passes_by.end(), false) == passes_by.end())
    passes_by.assign(passes_by.size(), false);
  std::set<int> devices;
  std::optional<Mesh> last;  // skips repeated meshes, since most values share one
  for (std::size_t v = 0; v < program_.values.size(); ++v) {
    const Mesh mesh = program_.values[v].layout.mesh();
    if (passes_by[v] || (last && *last == mesh)) continue;
    devices.insert(mesh.device_ids().begin(), mesh.device_ids().end());
    last = mesh;
  }
  return devices;
}

void Executable::bind_steps(int me) {
  std::set<int> devices = devices_of_values();
  const BindContext context{program_, values_, me};
  for (const auto& i : program_.instructions) {
    steps_.push_back(bind(context, i));
    may_fail_ |= i.op != nullptr && i.op->may_fail;
    for (const auto* part : steps_.back()->parts()) {
      may_fail_ |= part->may_fail();
      devices.insert(part->devices().begin(), part->devices().end());
    }
  }
  devices_.assign(devices.begin(), devices.end());
  takes_part_ = devices.contains(me);
}

void Executable::find_last_uses() {
  std::vector<bool> seen(program_.values.size());
  for (const int v : program_.outputs) seen[v] = true;
  for (std::size_t n = steps_.size(); n-- > 0;) {
    const auto& i = program_.instructions[n];
    for (const auto* list : {&i.inputs, &i.outputs})
      for (const int v : *list) {
        if (seen[v]) continue;
        seen[v] = true;
        steps_[n]->frees.push_back(v);
      }
  }
}

void Executable::count_memory() {
  std::vector<bool> is_elsewhere(program_.values.size());
  for (const int v : program_.inputs) is_elsewhere[v] = true;
  std::int64_t live = 0;
  for (const auto& i : program_.instructions)
    if (!is_stored(i)) is_elsewhere[i.outputs[0]] = true;
  for (std::size_t n = 0; n < steps_.size(); ++n) {
    for (const int v : program_.instructions[n].outputs)
      if (!is_elsewhere[v]) live = saturated_sum(live, values_[v].bytes);
    peak_bytes_ = std::max(peak_bytes_, saturated_sum(live, steps_[n]->temporary_bytes()));
    for (const int v : steps_[n]->frees)
      if (!is_elsewhere[v]) live -= values_[v].bytes;
  }
}

// Plans the overlap: a started collective is finished just before the first step that reads its result; one
// whose result is read at once runs without overlap.
void Executable::plan_overlap() {
  finish_before_.assign(steps_.size(), {});
  overlaps_.assign(steps_.size(), false);
  for (std::size_t n = 0; n < steps_.size(); ++n) {
    if (!steps_[n]->is_split()) continue;
    std::size_t reader = steps_.size();
    for (std::size_t m = n + 1; m < steps_.size() && reader == steps_.size(); ++m)
      for (const int v : program_.instructions[m].inputs)
        for (const int out : program_.instructions[n].outputs)
          if (v == out) reader = m;
    if (reader == n + 1) continue;
    overlaps_[n] = true;
    if (reader == steps_.size())
      finish_last_.push_back(n);
    else
      finish_before_[reader].push_back(n);
  }
}

// Text on the NaNs in the results of an instruction that has just run on this rank.
std::string Executable::nans_of(const Instruction& i, const Frame& frame) const {
  if (const auto* remap = i.as<RemapMove>(); remap != nullptr && remap->leaves_own) return {};
  for (const int v : i.outputs) {
    const auto& local = values_[v];
    const auto& buffer = frame.slots[v];
    if (!local.holds || !buffer) continue;
    const auto nans = count_nans(local.tile.dtype, buffer.data(), local.tile.elements());
    if (nans == 0) continue;
    std::string names;
    if (const auto* chain = i.as<FusedChain>())
      for (const auto& step : chain->steps) names += (names.empty() ? "" : " + ") + step.op->name;
    if (names.empty()) names = i.call != nullptr ? i.call : i.op != nullptr ? i.op->name : "an op";
    return names + " at " + site(i.where) + " made " + std::to_string(nans) + " NaN in its block of " +
           std::to_string(local.tile.elements()) + " elements";
  }
  return {};
}

// The first failure of a rank, on all of them. Its kind travels as the first letter of the text.
static std::optional<FailedValue> first_failure(const comm::Communicator& ranks, const Frame& mine) {
  auto text = comm::first_error(ranks, mine.failure.empty() ? "" : char(mine.failure_kind) + mine.failure);
  if (text.empty()) return std::nullopt;
  const auto kind = text.find(": ") + 2;  // behind "rank 3: "
  FailedValue failure{static_cast<FailedValue::Kind>(text[kind]), ""};
  failure.text = text.erase(kind, 1);
  return failure;
}

RunResult Executable::run(std::vector<Buffer> inputs) {
  Frame failures;
  auto outputs = run_to_its_end(std::move(inputs), failures);
  if (may_fail_ && takes_part_) {
    if (auto failure = first_failure(comm::group(devices_), failures))
      return failed_result(std::move(outputs), std::move(*failure), failures.failed_steps);
  }
  if (nan_check_on() && takes_part_) {
    const auto failure = comm::first_error(comm::group(devices_), failures.nan_failure);
    if (!failure.empty())
      return failed_result(
          std::move(outputs),
          {FailedValue::nan,
           "nan check: " + failure + "; look at its operands there, or turn debug::set_nan_check off"},
          failures.failed_steps);
  }
  return {std::move(outputs), nullptr, {}};
}

// Gathers the failed steps of all ranks, which may differ: the singular block may be on one rank only.
RunResult Executable::failed_result(std::vector<Buffer> outputs, FailedValue failure,
                                    const std::vector<int>& steps) const {
  std::string mine;
  for (const int n : steps) mine += std::to_string(n) + " ";
  std::vector<bool> failed(steps_.size());
  for (const auto& text : comm::gather_texts(comm::group(devices_), mine)) {
    std::istringstream numbers(text);
    for (std::size_t n = 0; numbers >> n;) failed.at(n) = true;
  }
  return {std::move(outputs), std::make_shared<const FailedValue>(std::move(failure)), depend_on(failed)};
}

// For each output of the program, whether it depends on failed steps.
std::vector<bool> Executable::depend_on(const std::vector<bool>& failed_steps) const {
  std::vector<bool> has_failed(program_.values.size()), outputs;
  for (std::size_t n = 0; n < steps_.size(); ++n) {
    const auto& i = program_.instructions[n];
    const bool fails = failed_steps[n] || std::any_of(i.inputs.begin(), i.inputs.end(),
                                                      [&](int v) { return bool(has_failed[v]); });
    for (const int v : i.outputs) has_failed[v] = fails;
  }
  for (const int v : program_.outputs) outputs.push_back(has_failed[v]);
  return outputs;
}

// Runs the program and records a failure of this rank alone; the others are not told, since that would cost
// an agreement per run.
std::vector<Buffer> Executable::run_to_its_end(std::vector<Buffer> inputs, Frame& failures) {
  if (!takes_part_ || devices_.size() == 1) return run_inside(std::move(inputs), failures);
  try {
    return run_inside(std::move(inputs), failures);
  } catch (...) {
    comm::mark_failed_by_exception("while this rank computed with others");
    throw;
  }
}

namespace {
// Runs `work` and reports its duration to the watcher.
template <class Work> void watched(const Program& program, const Instruction& i, bool ends, Work work) {
  RunWatcher* const watcher = i.is<ControlFlow>() ? nullptr : run_watcher();
  if (watcher == nullptr) return work();
  const auto before = comm::bytes_from_other_hosts();
  const double start_s = watch_clock_s();
  work();
  watcher->step(
      {program, i, start_s, watch_clock_s() - start_s, comm::bytes_from_other_hosts() - before, ends});
}
}  // namespace

// Keeps the text of the first failure of each kind, and the number of every failed step.
void Executable::note_failures(std::size_t n, Frame& frame, Frame& outer, bool looks_for_nan) const {
  if (looks_for_nan && frame.nan_failure.empty())
    frame.nan_failure = nans_of(program_.instructions[n], frame);
  if (frame.failure.empty() && frame.nan_failure.empty()) [[likely]]
    return;
  outer.failed_steps.push_back(static_cast<int>(n));
  if (outer.failure.empty()) outer.failure_kind = frame.failure_kind;
  for (const auto text : {&Frame::failure, &Frame::nan_failure}) {
    if ((outer.*text).empty()) outer.*text = frame.*text;
    (frame.*text).clear();
  }
}

void Executable::finish_step(std::size_t n, Frame& frame, Frame& outer) {
  watched(program_, program_.instructions[n], true, [&] { steps_[n]->finish(frame); });
  note_failures(n, frame, outer, false);
}

void Executable::run_step(std::size_t n, Frame& frame, Frame& outer, std::vector<std::size_t>& under_way) {
  for (const auto started : finish_before_[n])
    finish_step(started, frame, outer), std::erase(under_way, started);
  for (const auto started : under_way) steps_[started]->move_on();
  auto& step = *steps_[n];
  const auto& instruction = program_.instructions[n];
  watched(program_, instruction, false, [&] {
    if (overlaps_[n])
      step.start(frame), under_way.push_back(n);
    else
      step.run(frame);
  });
  note_failures(n, frame, outer, nan_check_on() && !overlaps_[n]);
  for (const int v : step.frees) frame.slots[v].reset();
}

std::vector<Buffer> Executable::run_inside(std::vector<Buffer> inputs, Frame& outer) {
  Frame frame;
  frame.slots.resize(program_.values.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) frame.slots[program_.inputs[i]] = std::move(inputs[i]);
  inputs.clear();
  std::vector<std::size_t> under_way;  // steps that have started but not finished
  for (std::size_t n = 0; n < steps_.size(); ++n) run_step(n, frame, outer, under_way);
  for (const auto started : finish_last_) finish_step(started, frame, outer);
  std::vector<Buffer> outputs;
  outputs.reserve(program_.outputs.size());
  for (const int v : program_.outputs) outputs.push_back(frame.slots[v]);
  return outputs;
}

}  // namespace tessera
