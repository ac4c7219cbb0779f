#include "simulate/plan_steps.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/text.hpp"
#include "compile/cost.hpp"
#include "compile/forecast/collective_seconds.hpp"

namespace tessera {

StepWriter::StepWriter(const Rates& rates, int ranks) : rates_(rates) {
  planned_.plan.ranks = ranks;
  if (rates.topology.ranks_per_host == 0)
    note("all ranks are on one host: the machine file has no ranks_per_host");
}
void StepWriter::serve(const Instruction& i) {
  call_ = (i.call != nullptr ? std::string(i.call)
           : i.op != nullptr ? i.op->name
                             : std::string("result")) +
          " at " + site(i.where);
}
int StepWriter::name_of(const std::string& kind) {
  const auto [found, is_new] = names_.emplace(std::pair(kind, call_), static_cast<int>(names_.size()));
  if (is_new) {
    planned_.kinds.push_back(kind);
    planned_.calls.push_back(call_);
    planned_.plan.names.push_back((kind.empty() ? "" : kind + " for ") + call_);
  }
  return found->second;
}

void StepWriter::compute(double seconds, std::shared_ptr<const std::vector<float>> share) {
  if (seconds <= 0) return;
  planned_.plan.steps.push_back(
      {TimelineStep::compute, name_of(""), seconds, std::move(share), nullptr, 0, 0});
}
int StepWriter::begin(const std::string& kind, RoundsPtr rounds) {
  planned_.plan.steps.push_back({TimelineStep::begin, name_of(kind), 0, nullptr, std::move(rounds), 0, 0});
  return static_cast<int>(planned_.plan.steps.size()) - 1;
}
void StepWriter::finish(int step) {
  const int name = planned_.plan.steps[static_cast<std::size_t>(step)].name;
  planned_.plan.steps.push_back({TimelineStep::finish, name, 0, nullptr, nullptr, step, 0});
}
int StepWriter::mark() {
  planned_.plan.steps.push_back({TimelineStep::mark, name_of(""), 0, nullptr, nullptr, 0, 0});
  return static_cast<int>(planned_.plan.steps.size()) - 1;
}
void StepWriter::repeat(int mark, double times) {
  planned_.plan.steps.push_back({TimelineStep::repeat, name_of(""), 0, nullptr, nullptr, mark, times});
}
void StepWriter::note(const std::string& text) {
  if (std::find(planned_.notes.begin(), planned_.notes.end(), text) == planned_.notes.end())
    planned_.notes.push_back(text);
}

namespace {

using Share = std::shared_ptr<const std::vector<float>>;

class ProgramSteps {
 public:
  ProgramSteps(StepWriter& writer, const Program& program) : w_(writer), program_(program) {}

  void write() {
    const auto& list = program_.instructions;
    for (std::size_t n = 0; n < list.size(); ++n) {
      finish_before(list[n]);
      w_.serve(list[n]);
      write(list[n], n);
    }
    for (const auto& [instruction, step] : under_way_) w_.finish(step);
  }

 private:
  // Collectives that were begun end before the first step that reads their result.
  void finish_before(const Instruction& reader) {
    std::erase_if(under_way_, [&](const auto& begun) {
      for (const int out : program_.instructions[begun.first].outputs)
        if (std::find(reader.inputs.begin(), reader.inputs.end(), out) != reader.inputs.end()) {
          w_.finish(begun.second);
          return true;
        }
      return false;
    });
  }

  void write(const Instruction& i, std::size_t n) {
    std::visit(
        overloaded{[&](const KernelCall&) { arithmetic(i); }, [&](const FusedChain&) { arithmetic(i); },
                   [](const Bitcast&) {}, [&](const Move& move) { write(i, n, move.step); },
                   [&](const AllReduce& r) { write(i, n, r); }, [&](const ReduceScatter& r) { write(i, r); },
                   [&](const RemapMove& r) { exchange(i, *r.map, nullptr); },
                   [&](const CommunicatingCall& call) { write(i, call); },
                   [&](const ControlFlow& flow) { write(i, *flow.inside); }},
        i.what);
  }

  double seconds_of(const Instruction& i) const { return local_seconds(program_, i, w_.rates()); }
  double seconds_of_memory(const Instruction& i) const {
    return w_.rates().memory_seconds(static_cast<double>(accessed_bytes(program_, i)));
  }
  void arithmetic(const Instruction& i) { w_.compute(seconds_of(i), share_of(i)); }

  // Each rank's block of the result as a part of the largest.
  Share share_of(const Instruction& i) {
    if (i.outputs.empty()) return nullptr;
    const auto& value = program_.values[static_cast<std::size_t>(i.outputs[0])];
    const auto largest = static_cast<double>(value.layout.shard_shape(value.type.shape).elements());
    if (largest <= 0) return nullptr;
    auto share = std::make_shared<std::vector<float>>(static_cast<std::size_t>(w_.ranks()), 0.0F);
    bool is_even = true;
    for (const int id : value.layout.mesh().device_ids()) {
      const auto own = static_cast<double>(box_elements(value.layout.local_box(value.type.shape, id)));
      is_even = is_even && own == largest;
      (*share)[static_cast<std::size_t>(id)] = static_cast<float>(own / largest);
    }
    return is_even && value.layout.mesh().size() == w_.ranks() ? nullptr : share;
  }

  // Whether the next instruction reads the result: then nothing overlaps.
  bool is_read_at_once(std::size_t n) const {
    if (n + 1 == program_.instructions.size()) return false;
    for (const int in : program_.instructions[n + 1].inputs)
      for (const int out : program_.instructions[n].outputs)
        if (in == out) return true;
    return false;
  }
  void begin(std::size_t n, const std::string& kind, RoundsPtr rounds) {
    const int step = w_.begin(kind, std::move(rounds));
    if (is_read_at_once(n))
      w_.finish(step);
    else
      under_way_.push_back({n, step});
  }

  double bytes_of(int v) const {
    return static_cast<double>(block_bytes(program_.values[static_cast<std::size_t>(v)]));
  }

  void write(const Instruction& i, std::size_t n, const ReshardStep& step) {
    if (step.kind == StepKind::all_gather) {
      const auto groups = w_.groups_along(step.from.mesh(), step.axes);
      begin(n, "all-gather",
            w_.all_gather(groups, bytes_of(i.outputs[0]) / static_cast<double>(groups->largest())));
    } else if (step.bytes > 0) {
      const auto map = identity_remap(program_.values[static_cast<std::size_t>(i.outputs[0])].type.shape);
      exchange(i, map, &step);
    } else {
      w_.compute(seconds_of_memory(i));
    }
  }
  void write(const Instruction& i, std::size_t n, const AllReduce& reduction) {
    double bytes = 0;
    for (const int v : i.outputs) bytes += bytes_of(v);
    begin(n, "all-reduce", w_.all_reduce(groups_of(i, reduction.axes), bytes));
  }
  void write(const Instruction& i, const ReduceScatter& reduction) {
    w_.communicate("reduce-scatter", w_.reduce_scatter(groups_of(i, reduction.axes), bytes_of(i.outputs[0])));
  }
  GroupsPtr groups_of(const Instruction& i, const MeshAxes& axes) {
    return w_.groups_along(program_.values[static_cast<std::size_t>(i.outputs[0])].layout.mesh(), axes);
  }

  // The plan of each rank, made when the rank gets there and forgotten when it has sent.
  void exchange(const Instruction& i, const Remap& map, const ReshardStep* step) {
    std::vector<Sharding> from;
    std::vector<Shape> shapes;
    for (const int v : i.inputs) {
      const auto& value = program_.values[static_cast<std::size_t>(v)];
      from.push_back(step != nullptr ? step->from : value.layout);
      shapes.push_back(value.type.shape);
    }
    const auto& out = program_.values[static_cast<std::size_t>(i.outputs[0])];
    const Sharding to = step != nullptr ? step->to : out.layout;
    const double item = static_cast<double>(itemsize(out.type.dtype));
    const auto fixed = manual_axes_of(out.region);
    const auto plan = [map, from, shapes, to, shape = out.type.shape, item, fixed](int rank) {
      const auto all = plan_exchange(map, from, shapes, to, shape, rank, fixed);
      PlannedMessages messages;
      for (const auto& t : all.sends) {
        const double bytes = static_cast<double>(box_elements(t.to)) * item;
        if (!messages.sends.empty() && messages.sends.back().to == t.peer)
          messages.sends.back().bytes += bytes;
        else
          messages.sends.push_back({t.peer, bytes, 1, 0});
      }
      // Each rank begins with its next neighbour, so that not all send to one.
      std::rotate(messages.sends.begin(),
                  std::find_if(messages.sends.begin(), messages.sends.end(),
                               [&](const auto& m) { return m.to > rank; }),
                  messages.sends.end());
      int last = -1;
      for (const auto& t : all.receives) messages.receives += t.peer != last ? 1 : 0, last = t.peer;
      return messages;
    };
    if (i.bytes > 0 || (step != nullptr && step->bytes > 0)) {
      w_.compute(seconds_of_memory(i));  // packing
      w_.communicate(step != nullptr ? step_name(step->kind) : "collective-permute", exchange_rounds(plan));
    } else {
      w_.compute(seconds_of_memory(i));
    }
  }

  // A kernel that communicates: its arithmetic in as many parts as it has calls, each behind the part's
  // collectives.
  void write(const Instruction& i, const CommunicatingCall& call) {
    const double seconds = seconds_of(i);
    if (write_factorization(w_, program_, i, call)) return;
    const bool overlaps = call.costs.size() == 1 && call.costs[0].kind == "panels";
    constexpr std::int64_t most_parts = 64;
    std::int64_t parts = 1;
    for (const auto& cost : call.costs) parts = std::max(parts, cost.calls);
    if (parts > most_parts) w_.note("kernels with more than 64 collectives: 64, of as many bytes together");
    parts = std::min(parts, most_parts);
    for (std::int64_t part = 0; part < parts; ++part) {
      std::vector<int> begun;
      for (const auto& cost : call.costs) {
        if (cost.bytes == 0 || cost.calls <= part) continue;
        MeshAxes axes = cost.axes;
        const Mesh mesh = mesh_of(program_, i);
        if (axes.empty())
          for (int a = 0; a < mesh.ndim(); ++a) axes.push_back(a);
        const double bytes =
            static_cast<double>(cost.bytes) / static_cast<double>(std::min(cost.calls, parts));
        begun.push_back(w_.begin(cost.kind, w_.of_kind(cost.kind, w_.groups_along(mesh, axes), bytes)));
        if (!overlaps) w_.finish(begun.back());
      }
      w_.compute(seconds / static_cast<double>(parts));
      if (overlaps)
        for (const int step : begun) w_.finish(step);
    }
  }

  // Loops are followed for a few steps; the others take as long as these.
  void write(const Instruction& i, const Control& control) {
    if (control.loop() == nullptr) {
      const auto seconds = [](const Program& part) { return explanation_of(part).predicted_seconds; };
      const auto most =
          std::max_element(control.parts.begin(), control.parts.end(),
                           [&](const auto& a, const auto& b) { return seconds(a) < seconds(b); });
      return ProgramSteps(w_, *most).write();
    }
    constexpr std::int64_t followed = 4;
    const std::int64_t steps = control.steps(), now = std::min(steps, followed);
    int mark = -1;
    for (std::int64_t step = 0; step < now; ++step) {
      if (step == 1) mark = w_.mark();
      for (const auto& part : control.parts) ProgramSteps(w_, part).write();
    }
    w_.serve(i);
    if (steps <= now) return;
    w_.note(
        "loops of more than 4 steps: 4 are followed, the others take as long as the second to the fourth");
    w_.repeat(mark, static_cast<double>(steps - now) / static_cast<double>(now - 1));
  }

  StepWriter& w_;
  const Program& program_;
  std::vector<std::pair<std::size_t, int>> under_way_;  // instruction, step
};

bool communicates(const Program& program) {
  return std::any_of(program.instructions.begin(), program.instructions.end(), [](const Instruction& i) {
    const auto* control = i.control();
    return !traffic_of(i).empty() ||
           (control != nullptr && std::any_of(control->parts.begin(), control->parts.end(), communicates));
  });
}

void write_agreement(StepWriter& writer) {
  RankGroups all(writer.ranks());
  std::vector<int> ranks(static_cast<std::size_t>(writer.ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  all.add(std::move(ranks));
  writer.serve("the call, which all ranks compare first");
  writer.communicate("agreement", doubling_rounds(std::make_shared<const RankGroups>(std::move(all)),
                                                  forecast::agreement_bytes));
}

int ranks_of(const Program& program) {
  int most = 0;
  for (const auto& value : program.values) {
    if (value.everywhere) continue;
    for (const int id : value.layout.mesh().device_ids()) most = std::max(most, id);
  }
  return most + 1;
}

}  // namespace

PlannedTimeline timeline_of(const Program& program, const Rates& rates) {
  StepWriter writer(rates, ranks_of(program));
  if (writer.host_of(writer.ranks() - 1) > 0 && communicates(program)) write_agreement(writer);
  ProgramSteps(writer, program).write();
  return std::move(writer.planned());
}

}  // namespace tessera
