#include "api/evaluate.hpp"

#include <algorithm>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include <tessera/runtime.hpp>
#include "api/failures.hpp"
#include "api/learned_values.hpp"
#include "api/memory.hpp"
#include "api/preemption.hpp"
#include "base/log.hpp"
#include "base/recent.hpp"
#include "base/session.hpp"
#include "base/settings.hpp"
#include "base/thresholds.hpp"
#include "comm/mpi/idle_groups.hpp"
#include "comm/watch/agreement.hpp"
#include "comm/watch/failure.hpp"
#include "comm/watch/waiting.hpp"
#include "compile/held_values.hpp"
#include "compile/pipeline.hpp"
#include "graph/hooks.hpp"
#include "run/replicas.hpp"
#include "run/watch.hpp"

namespace tessera {
namespace {

struct Plan {
  GraphForm form;  // distinguishes graphs with the same hash
  std::vector<int> participants;
  std::shared_ptr<Executable> executable;
};
class Plans {
 public:
  Plans() { comm::world(); }  // created first: plans must be destroyed before their communicators

  Plan* find(const Graph& graph, const GraphKey& key) {
    if (auto* alike = by_hash_.find(key.hash))
      for (auto& plan : *alike)
        if (plan.form.is_of(graph)) return &plan;
    return nullptr;
  }
  Plan& add(const GraphKey& key, Plan plan) {
    auto* alike = by_hash_.find(key.hash);
    if (alike == nullptr) alike = &by_hash_.insert(key.hash, {});
    return alike->emplace_back(std::move(plan));
  }

 private:
  static constexpr std::size_t most_hashes = 1024;
  RecentMap<std::uint64_t, std::vector<Plan>> by_hash_{most_hashes};
};

// Evaluates on behalf of loops that only record, so that their graphs do not grow without bound.
const bool pending_hook = (
    compute_pending = [](const std::vector<Array>& arrays) { evaluate(arrays); }, true);

void store(const Graph& graph, const Program& program, RunResult result) {
  for (std::size_t i = 0; i < graph.roots.size(); ++i) {
    auto& output = mutable_output_of(graph.roots[i]);
    // The plan may have been made for an equal layout on a mesh cut into other axes.
    const Sharding& layout = program.values[program.outputs[i]].layout;
    const bool is_own = output.sharding && *output.sharding == layout;
    output.stored = Stored{is_own ? *output.sharding : layout, std::move(result.outputs[i])};
    if (result.failure && result.failed[i]) output.stored->failure = result.failure;
  }
  release_inputs(graph.roots);
}

}  // namespace

std::vector<int> participants(const Graph& graph) {
  std::vector<Mesh> meshes;
  const auto everywhere = replicated_everywhere().mesh().device_ids();
  const auto add = [&](const std::optional<Sharding>& sharding) {
    if (!sharding) return;
    const Mesh mesh = sharding->mesh();
    if (std::find(meshes.begin(), meshes.end(), mesh) == meshes.end()) meshes.push_back(mesh);
  };
  for (const auto& node : graph.nodes)
    for (const auto& output : node->outputs) add(output.sharding);
  for (const auto& leaf : graph.leaves) add(output_of(leaf).sharding);
  bool uncommitted = false;
  for (const auto& root : graph.roots) uncommitted |= !output_of(root).sharding;
  std::vector<int> ids;
  for (const auto& mesh : meshes) ids.insert(ids.end(), mesh.device_ids().begin(), mesh.device_ids().end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return uncommitted || ids.size() == everywhere.size() ? everywhere : ids;
}

namespace {

bool is_among(const std::vector<int>& ids) {
  return std::find(ids.begin(), ids.end(), process_index()) != ids.end();
}

}  // namespace

bool waits_for_others(const std::vector<int>& ids) {
  return settings().check > 0 && ids.size() > 1 && is_among(ids);
}

namespace {

// Throws on all ranks or on none: a rank that continued alone would wait for the others.
void refuse_together(const std::vector<int>& ids, const std::string& mine) {
  const auto text = waits_for_others(ids) ? comm::common_error(comm::group(ids), mine) : mine;
  if (!text.empty()) throw MemoryError(text);
}

}  // namespace

void mark_failed_after_agreement(const std::vector<int>& participants) noexcept {
  if (participants.size() > 1 && is_among(participants))
    comm::mark_failed_by_exception("while this rank made a plan ready");
}

// Whether ranks may run the program without an agreement. The answer is the same on all ranks, since it
// follows from what they have agreed on: nothing is sent, no rank can fail or have side effects, and no rank
// gets far ahead of the others before the next agreement.
bool may_run_alone(const Program& program, std::size_t participants) {
  constexpr std::int64_t most_bytes = 1 << 20;
  std::int64_t bytes = 0;
  for (const auto& value : program.values) {
    // Meshes on parts of the ranks are excluded: the ranks may disagree on which earlier evaluations have
    // failed.
    if (!value.everywhere && static_cast<std::size_t>(value.layout.mesh().size()) != participants)
      return false;
    bytes += value.layout.shard_shape(value.type.shape).elements() *
             static_cast<std::int64_t>(itemsize(value.type.dtype));
    if (bytes > threshold(most_bytes)) return false;
  }
  return std::all_of(program.instructions.begin(), program.instructions.end(), [](const Instruction& i) {
    const bool is_plain = i.op == nullptr || (!i.op->may_fail && !i.op->is_value_dependent);
    return is_plain &&
           (i.as<KernelCall>() != nullptr || i.as<FusedChain>() != nullptr || i.as<Bitcast>() != nullptr);
  });
}

// Whether every evaluation must agree: when NaN checks are on or the program listens for signals.
bool is_always_a_rendezvous(const Asked& asked) {
  return asked.key.may_differ || nan_check_on() || waits_for_stop();
}

// The user's call that brought the first data among the operands.
UserCall origin_of_data(const std::vector<Array>& operands) {
  for (const auto& x : operands)
    if (const auto& stored = output_of(x).stored; stored && stored->content != 0) return x.node()->called();
  return {};
}
// The data of a compiled function's arguments, which its graph does not contain.
std::string data_text(const Asked& asked) {
  std::string text;
  const auto& leaves = asked.graph.leaves;
  const auto is_leaf = [&](const Array& x) {
    return std::any_of(leaves.begin(), leaves.end(),
                       [&](const Array& leaf) { return leaf.node() == x.node(); });
  };
  for (const auto& x : asked.operands)
    if (const auto& stored = output_of(x).stored; stored && stored->content != 0 && !is_leaf(x))
      text += "  on " + comm::content_text(stored->content, x.node()->called()) + "\n";
  return text;
}

namespace {

// The values that this rank's handles hold besides the `asked` roots, and those that all ranks compute along.
struct Held {
  std::size_t asked;
  bool may_learn = false;  // of values that other ranks have computed
  std::uint64_t hash = 0;
  std::optional<ValueNumbers> united = std::nullopt;
};

ValueNumbers united_of_all(const comm::Communicator& group, const ValueNumbers& mine) {
  std::string text;
  for (const auto number : mine) text += std::to_string(number) + " ";
  std::set<std::uint32_t> all;
  for (const auto& theirs : comm::gather_texts(group, text)) {
    std::istringstream stream(theirs);
    for (std::uint32_t number = 0; stream >> number;) all.insert(number);
  }
  return {all.begin(), all.end()};
}

Agreed agree_on(const Asked& asked, Held& held) {
  comm::check_not_failed();
  const auto& ids = asked.participants;
  const auto is_ready = [&] { return asked.plan != nullptr && !exceeds_memory(asked.plan->peak_bytes()); };
  const bool uses_failed = std::any_of(asked.operands.begin(), asked.operands.end(),
                                       [](const Array& x) { return failure_of(x) != nullptr; });
  if (!waits_for_others(ids)) {
    stop_if_asked(ids);
    if (uses_failed && is_among(ids)) return Agreed::failed;
    return is_ready() ? Agreed::all_ready : Agreed::not_ready;
  }
  const auto* op = asked.graph.roots[0].node()->op;
  const comm::Purpose purpose(op != nullptr ? std::string_view(op->name) : std::string_view());
  const auto& group = comm::group(ids);
  const auto origin = asked.content != 0 ? origin_of_data(asked.operands) : UserCall();
  if (!uses_failed && !is_always_a_rendezvous(asked) &&
      comm::put_off(group, asked.plan_key, asked.content, origin)) {
    if (auto known = comm::united_for(group, asked.plan_key); known.hash != held.hash)
      held.united = std::move(known.numbers);
    return Agreed::later;
  }
  const auto text = [&] {
    return (nan_check_on() ? "evaluates, looking for NaN,\n" : "evaluates\n") + graph_text(asked.graph) +
           data_text(asked);
  };
  const auto fingerprint = asked.key.agreed + (nan_check_on() ? 1 : 0);
  const auto some_ask =
      comm::agree(group, asked.content == 0 ? fingerprint : mix(fingerprint, asked.content), text,
                  {!is_ready(), uses_failed, comm::has_too_many_groups(), held.hash, held.may_learn});
  if (some_ask.for_fewer_groups) comm::free_idle_groups(group);
  if (some_ask.for_comparison) return Agreed::unlike;
  if (some_ask.apart != 0) held.united = united_of_all(group, held_values(asked.graph, held.asked));
  stop_if_asked(ids);
  if (some_ask.for_failed_value) return Agreed::failed;
  return some_ask.for_plan || held.united ? Agreed::not_ready : Agreed::all_ready;
}

void allow_later(const Asked& asked, comm::Apart held) {
  if (!waits_for_others(asked.participants) || is_always_a_rendezvous(asked)) return;
  if (may_run_alone(asked.plan->program(), asked.participants.size()))
    comm::may_put_off(comm::group(asked.participants), asked.plan_key, call_text(), std::move(held));
}

}  // namespace

Agreed agree_on(const Asked& asked, bool may_learn) {
  Held nothing{asked.graph.roots.size(), may_learn};
  return agree_on(asked, nothing);
}
void allow_later(const Asked& asked) { allow_later(asked, {}); }

std::unique_ptr<Executable> make_ready(const std::function<Program()>& make, const Executable* known,
                                       const std::vector<int>& ids,
                                       const std::function<std::string()>& what) {
  std::optional<Program> program;
  std::string wrong;
  after_agreement(ids, [&] {
    try {
      if (make) program = make();
      // Checked before binding, which takes long for sizes that fit nowhere: a transfer of 64 TiB has a
      // million pieces.
      constexpr std::int64_t quick_to_bind = 1 << 30;
      if (const auto bytes = program ? bytes_at_least(*program, process_index()) : 0; bytes > quick_to_bind)
        wrong = memory_refusal(bytes, what());
    } catch (const std::bad_alloc&) {
      wrong = what() + ": there is no memory for its plan";
    }
  });
  refuse_together(ids, wrong);
  auto executable = after_agreement(ids, [&] {  // creates communicators
    auto bound = program ? std::make_unique<Executable>(std::move(*program), process_index()) : nullptr;
    if (const auto* const plan = bound ? bound.get() : known)
      wrong = memory_refusal(plan->peak_bytes(), what());
    return bound;
  });
  refuse_together(ids, wrong);
  return executable;
}

namespace {

void check_can_be_known(const Array& x) {
  check_usable(x);
  if (x.node()->has_placeholder) detail::check_not_leaked(x);
  if (x.node()->has_placeholder)
    throw ArgumentError(call_text() + ": the value of " + describe(x) +
                        " is asked for inside a function that is being traced (jit, vmap, shard_map, pmap "
                        "or eval_shape): it is not known yet. "
                        "Return it instead, use where/cond for decisions, or debug::print to see it");
  if (output_of(x).sharding && output_of(x).sharding->mesh().is_abstract())
    throw ShardingError(
        call_text() + ": the value of " + describe(x) +
        " is asked for, but its mesh is abstract: no processes stand behind it. Use explain or "
        "lower(...).compile().as_text() to plan on it");
}

std::vector<Array> without_value(const std::vector<Array>& arrays) {
  std::vector<Array> roots;
  for (const auto& x : arrays) {
    check_can_be_known(x);
    if (!x.node()->is_evaluated()) roots.push_back(x);
  }
  return roots;
}

// Raises the failure of a requested value whose earlier computation failed on this rank's mesh.
void raise_earlier_failure(const std::vector<Array>& arrays) {
  for (const auto& x : arrays)
    if (const auto& failure = failure_of(x);
        failure && output_of(x).stored->layout.mesh().position(process_index()) >= 0)
      raise(*failure);
}

std::vector<Buffer> buffers_of(const std::vector<Array>& leaves) {
  std::vector<Buffer> buffers;
  buffers.reserve(leaves.size());
  for (const auto& leaf : leaves) buffers.push_back(output_of(leaf).stored->buffer);
  return buffers;
}

// Returns the devices whose ranks must compare what they have computed, and call it again; none: it is done.
std::vector<int> evaluate_as_known(const std::vector<Array>& arrays, bool may_learn) {
  const auto roots = without_value(arrays);
  if (roots.empty()) return raise_earlier_failure(arrays), std::vector<int>();
  Graph graph = collect(roots, true);
  Held held{roots.size(), may_learn};
  GraphKey key = key_of(graph, held.asked, held.hash);
  auto& plans = state<Plans>();
  Plan* plan = plans.find(graph, key);
  auto found = plan == nullptr ? participants(graph) : std::vector<int>();
  const auto* ids_of_plan = plan == nullptr ? &found : &plan->participants;
  const auto* known = plan == nullptr ? nullptr : plan->executable.get();
  std::vector<Array> with_known;  // requested values that were computed before may have failed
  if (roots.size() < arrays.size()) {
    with_known = graph.leaves;
    with_known.insert(with_known.end(), arrays.begin(), arrays.end());
  }
  const auto& operands = with_known.empty() ? graph.leaves : with_known;
  const Agreed agreed = agree_on({graph, key, key.agreed, *ids_of_plan, known, operands, key.content}, held);
  if (agreed == Agreed::unlike) return *ids_of_plan;
  if (held.united) {
    hold(graph, held.asked, *held.united);
    key = key_of(graph, held.asked, held.hash);
    found = std::vector<int>(*ids_of_plan);
    ids_of_plan = &found;
    plan = plans.find(graph, key);
    known = plan == nullptr ? nullptr : plan->executable.get();
  }
  const auto& ids = *ids_of_plan;
  if (agreed == Agreed::failed) go_on_without_failed(graph, operands, ids);
  if (agreed == Agreed::not_ready || plan == nullptr) {
    const auto make = [&] { return compile(graph); };
    auto executable = when_refused(graph, roots, ids, [&] {
      return make_ready(plan == nullptr ? make : std::function<Program()>(), known,
                        agreed == Agreed::later ? std::vector<int>() : ids,
                        [&] { return call_text() + ": computing " + describe(roots[0]); });
    });
    after_agreement(ids, [&] {
      if (plan == nullptr) plan = &plans.add(key, {GraphForm(graph), found, std::move(executable)});
      if (agreed == Agreed::not_ready)
        allow_later({graph, key, key.agreed, plan->participants, plan->executable.get(), graph.leaves, 0},
                    {held.hash, held_values(graph, held.asked)});
    });
  }
  auto inputs = after_agreement(plan->participants, [&] { return buffers_of(graph.leaves); });
  const auto executable =
      plan->executable;  // kept alive: a callback during the run may evict the plan from the cache
  compare_replicas(*executable, inputs, process_index());
  auto result = executable->run(std::move(inputs));
  const auto failure = result.failure;
  store(graph, executable->program(), std::move(result));
  recycle(std::move(graph));
  if (failure) raise(*failure);
  raise_earlier_failure(arrays);
  return {};
}

void evaluate_together(const std::vector<Array>& arrays, const std::vector<Array>& named) {
  for (bool may_learn = true;;) {
    const auto ids = evaluate_as_known(arrays, may_learn);
    if (ids.empty()) return;
    may_learn = learn_values(ids, named.empty() ? arrays : named);
  }
}

// If values are on several meshes, those of a part of the ranks come first, mesh by mesh: ranks that have
// computed them before are asked for the others alone.
void evaluate_parts(const std::vector<Array>& arrays, const std::vector<Array>& named) {
  std::map<std::vector<int>, std::vector<Array>> parts;
  bool has_others = false;
  for (const auto& x : arrays) {
    if (!x.node() || x.node()->is_evaluated()) continue;
    const auto& sharding = output_of(x).sharding;
    if (sharding && sharding->mesh().size() < process_count())
      parts[sharding->mesh().device_ids()].push_back(x);
    else
      has_others = true;
  }
  if (parts.size() + (has_others ? 1 : 0) < 2) return;
  for (const auto& [ids, values] : parts) {
    try {
      evaluate_together(values, named);
    } catch (const LinAlgError&) {  // stored with the values, and raised with the others
    } catch (const NanError&) {
    } catch (const MemoryError&) {}
  }
}

}  // namespace

void forget_plans() { state<Plans>() = Plans(); }

void evaluate(const std::vector<Array>& arrays, const std::vector<Array>& named) {
  check_thread("eval");
  if (arrays.size() > 1) evaluate_parts(arrays, named);
  evaluate_together(arrays, named);
}

}  // namespace tessera
