#include "stream/stages.hpp"

#include <tessera/device.hpp>
#include <tessera/ops.hpp>

#include <algorithm>
#include <optional>
#include <set>

#include "base/call.hpp"
#include "base/text.hpp"
#include "ops/build.hpp"
#include "stream/file_source.hpp"
#include "stream/spill/simplify.hpp"

namespace tessera::stream {
namespace {

constexpr int most_stages = 8;
// Each stage opens a search for the rest, so that programs that fit in no way would be searched for minutes.
// Those that fit take up to 255.
constexpr int most_searches = 400;

// The values that are still to be computed, with the numbers of the results that they are.
struct Open {
  std::vector<Array> values;
  std::vector<int> results;
};
using Stages = std::vector<PlannedStage>;

bool fits(const Stages& stages) {
  return std::all_of(stages.begin(), stages.end(), [](const PlannedStage& s) {
    return s.stage.facts.peak_bytes <= s.stage.facts.limit_bytes;
  });
}
std::int64_t moved(const Stages& stages) {
  std::int64_t bytes = 0;
  for (const auto& s : stages)
    bytes += s.stage.facts.bytes_read + s.stage.facts.bytes_written + s.stage.facts.bytes_spilled;
  return bytes;
}
std::int64_t peak(const Stages& stages) {
  std::int64_t most = 0;
  for (const auto& s : stages) most = std::max(most, s.stage.facts.peak_bytes);
  return most;
}
bool is_better(const Stages& a, const Stages& b) {
  if (fits(a) != fits(b)) return fits(a);
  return fits(a) ? moved(a) < moved(b) : peak(a) < peak(b);
}
void keep_better(std::optional<Stages>& best, Stages&& stages) {
  if (!best || is_better(stages, *best)) best.emplace(std::move(stages));
}

class Search {
 public:
  Search(const Request& request, const Room& room)
      : request_(request), room_(room), numbers_(request.number) {}

  std::optional<Stages> find(const Open& open, std::int64_t held, int depth) {
    ++searches_;
    std::optional<Stages> best = in_one(open, held, depth);
    if (const auto parts = with_parts_of_files(open.values, numbers_); !are_same(parts, open.values))
      if (auto stages = in_one({parts, open.results}, held, depth)) keep_better(best, std::move(*stages));
    for (const SelectBy selection : {SelectBy::rounds, SelectBy::sorting}) {
      if ((best && fits(*best)) || (selection == SelectBy::sorting && !has_selection(open.values))) break;
      const Simplifying how{selection, room_.bytes, depth == 0};
      const Open simple{simplified(open.values, numbers_, how), open.results};
      if (auto stages = in_some(simple, held, depth)) keep_better(best, std::move(*stages));
    }
    const bool is_simple = best && fits(*best) && best->size() == 1 && !best->front().panels;
    if (is_simple && depth + 1 < most_stages && moved(*best) > 3 * bytes_of_files(open))
      if (auto stages = with_copy(open, held, depth); stages && 2 * moved(*stages) < moved(*best))
        keep_better(best, std::move(*stages));
    return best;
  }
  const std::string& refusals() const { return refusals_; }
  // The bytes of the operands and results of an op that was refused, on all ranks together.
  std::int64_t needed_bytes() const { return needed_bytes_; }

 private:
  static bool are_same(const std::vector<Array>& a, const std::vector<Array>& b) {
    return std::ranges::equal(a, b, {}, id_of, id_of);
  }
  static std::int64_t bytes_of_files(const Open& open) {
    std::int64_t bytes = 0;
    for (const auto& node : collect(open.values, false).nodes)
      if (is_file(*node)) bytes += Array(node, 0).nbytes();
    return bytes;
  }
  std::optional<Stages> in_some(const Open& simple, std::int64_t held, int depth) {
    std::optional<Stages> best = in_one(simple, held, depth);
    if ((best && fits(*best)) || depth + 1 >= most_stages || searches_ > most_searches) return best;
    const Graph graph = collect(simple.values, false);
    const DimClasses dims(graph);
    for (const auto& candidate : candidates_in(graph, dims))
      if (auto stages = in_several(simple, graph, dims, candidate, held, depth))
        keep_better(best, std::move(*stages));
    if (!best || !fits(*best))
      if (auto stages = in_panels(simple, graph, dims, held, depth)) keep_better(best, std::move(*stages));
    return best;
  }
  static std::int64_t bytes_of_operands(const Node& node) {
    std::int64_t bytes = 0;
    for (const auto& x : node.inputs) bytes += x.nbytes();
    for (const auto& y : node.outputs)
      bytes += y.type.shape.elements() * static_cast<std::int64_t>(itemsize(y.type.dtype));
    return bytes;
  }
  std::optional<TargetChunks> chunks_of(int result) const {
    return request_.chunks.empty() ? std::nullopt : request_.chunks[static_cast<std::size_t>(result)];
  }
  Wanted wanted_result(const Open& open, std::size_t i) const {
    return {open.values[i], request_.is_stored, nullptr, chunks_of(open.results[i])};
  }
  void count_writes(PlannedStage& planned) const {
    auto& stage = planned.stage;
    for (std::size_t i = 0; i < stage.wanted.size(); ++i) {
      if (const auto& spill = planned.outcomes[i].spill) stage.facts.bytes_spilled += spill->bytes();
      if (planned.outcomes[i].result < 0 || !request_.is_stored) continue;
      const double bytes = static_cast<double>(stage.wanted[i].value.nbytes());
      const double again = times_rewritten(stage, stage.wanted[i]);
      stage.facts.bytes_written += static_cast<std::int64_t>((1 + again) * bytes);
      stage.facts.bytes_read += static_cast<std::int64_t>(again * bytes);
    }
  }
  // How often a chunk is read and written again, for the slabs that share it with the first one.
  static double times_rewritten(const Stage& stage, const Wanted& wanted) {
    const int dim = stage.dims->dim_in(stage.roles.dim_class, wanted.value);
    if (dim < 0 || !wanted.chunks || wanted.chunks->extents.empty() || stage.length >= stage.extent) return 0;
    const auto chunk = std::min(wanted.chunks->extents[static_cast<std::size_t>(dim)], stage.extent);
    const double slabs = static_cast<double>(chunk) / static_cast<double>(stage.length);
    return stage.length % chunk == 0 ? 0 : chunk % stage.length == 0 ? slabs - 1 : slabs;
  }

  // A single stage for all of the values.
  std::optional<Stages> in_one(const Open& open, std::int64_t held, int depth) {
    std::vector<Wanted> wanted;
    std::vector<Outcome> outcomes;
    for (std::size_t i = 0; i < open.values.size(); ++i) {
      wanted.push_back(wanted_result(open, i));
      outcomes.push_back({open.results[i]});
    }
    const Graph graph = collect(open.values, false);
    const DimClasses dims(graph);
    std::optional<Stages> best;
    const auto add = [&](int dim_class, std::int64_t extent) {
      Roles roles = roles_in(graph, dims, dim_class);
      if (!roles.refusal.empty()) {
        const std::string refusal = "\n  a dim of " + std::to_string(extent) + ": " + roles.refusal;
        if (depth == 0 && refusals_.find(refusal) == std::string::npos) refusals_ += refusal;
        if (depth == 0) needed_bytes_ = std::max(needed_bytes_, bytes_of_operands(*roles.refused_by));
        return;
      }
      PlannedStage stage{stage_along(wanted, graph, dims, std::move(roles), extent, with(held)), outcomes};
      count_writes(stage);
      Stages stages;
      stages.push_back(std::move(stage));
      keep_better(best, std::move(stages));
    };
    const auto candidates = candidates_in(graph, dims);
    for (const auto& c : candidates) add(dims.of(*c.file, 0, c.dim), c.extent);
    // Values that earlier stages left are small, and so are files of single elements.
    if ((depth > 0 || candidates.empty()) && (!best || !fits(*best))) add(-1, 1);
    return best;
  }

  Room with(std::int64_t held) const { return {room_.bytes, room_.slab, held}; }

  // The values that a stage leaves: results, and operands of further stages.
  struct Frontier {
    std::vector<Wanted> wanted;
    std::vector<Outcome> outcomes;
  };
  // A stage along the dim, and further ones for what is left.
  std::optional<Stages> in_several(const Open& open, const Graph& graph, const DimClasses& dims,
                                   const StreamableDim& candidate, std::int64_t held, int depth) {
    const auto accepted = accepted_nodes(graph, dims, candidate);
    Graph part{accepted, graph.leaves, {}};
    const DimClasses own = dims.joined_by(accepted);
    const Roles roles = roles_in(part, own, own.of(*candidate.file, 0, candidate.dim));
    Frontier frontier = frontier_of(open, graph, roles);
    if (frontier.wanted.empty()) return std::nullopt;
    return in_stages(open, graph, std::move(frontier), candidate, held, depth);
  }

  // A stage along the dim for the frontier, and further ones for the rest.
  std::optional<Stages> in_stages(const Open& open, const Graph& graph, Frontier frontier,
                                  const StreamableDim& candidate, std::int64_t held, int depth) {
    Graph first = collect(values_of(frontier.wanted), false);
    const DimClasses first_dims(first);
    if (!std::any_of(first.nodes.begin(), first.nodes.end(),
                     [&](const NodePtr& node) { return node.get() == candidate.file; }))
      return std::nullopt;
    Roles first_roles = roles_in(first, first_dims, first_dims.of(*candidate.file, 0, candidate.dim));
    if (!first_roles.refusal.empty()) return std::nullopt;
    PlannedStage stage{stage_along(frontier.wanted, std::move(first), first_dims, std::move(first_roles),
                                   candidate.extent, with(held)),
                       std::move(frontier.outcomes)};
    if (stage.stage.facts.peak_bytes > room_.bytes) return std::nullopt;
    count_writes(stage);
    const Open rest = rest_of(open, graph, stage, held);
    auto further = find(rest, held, depth + 1);
    if (!further) return std::nullopt;
    Stages stages;
    stages.push_back(std::move(stage));
    for (auto& s : *further) stages.push_back(std::move(s));
    return stages;
  }

  // A large file is copied first, to tiles of which slabs along any dim are long runs.
  std::optional<Stages> with_copy(const Open& open, std::int64_t held, int depth) {
    const Graph graph = collect(open.values, false);
    std::optional<Stages> best;
    for (const auto& node : graph.nodes) {
      const Array file(node, 0);
      if (!is_file(*node) || file.nbytes() <= room_.bytes) continue;
      for (int d = 0; d < file.ndim(); ++d) {
        const StreamableDim along{node.get(), d, file.shape()[static_cast<std::size_t>(d)]};
        if (auto stages =
                in_stages(open, graph, {{{file, true}}, {{-1, spill_of(file)}}}, along, held, depth))
          keep_better(best, std::move(*stages));
      }
    }
    return best;
  }

  // The result in panels, or a product below it, which is then in a temporary file.
  std::optional<Stages> in_panels(const Open& open, const Graph& graph, const DimClasses& dims,
                                  std::int64_t held, int depth) {
    if (open.values.size() == 1 && request_.is_stored && !chunks_of(open.results[0]))
      if (auto planned = panels_within(open.values[0], with(held), numbers_)) {
        planned->facts.bytes_written = open.values[0].nbytes();
        Stages stages;
        stages.push_back(stage_in_panels(std::move(*planned), dims, {open.results[0]}));
        return stages;
      }
    for (const auto& node : graph.nodes)
      if (node->op->name == "dot" && node->outputs[0].type.shape.ndim() > 0)
        if (auto stages = product_in_panels(Array(node, 0), open, graph, dims, held, depth)) return stages;
    return std::nullopt;
  }
  std::optional<Stages> product_in_panels(const Array& x, const Open& open, const Graph& graph,
                                          const DimClasses& dims, std::int64_t held, int depth) {
    auto planned = panels_within(x, with(held), numbers_);
    if (!planned) return std::nullopt;
    const auto spill = spill_of(x);
    planned->facts.bytes_spilled = spill->bytes();
    Replaced replaced(graph);
    replaced.set(x, record_source(source_of_spill(spill), numbers_));
    Open rest{{}, open.results};
    for (const auto& value : open.values) rest.values.push_back(replaced.of(value));
    auto further = find(rest, held, depth + 1);
    if (!further) return std::nullopt;
    Stages stages;
    stages.push_back(stage_in_panels(std::move(*planned), dims, {-1, spill}));
    for (auto& s : *further) stages.push_back(std::move(s));
    return stages;
  }
  PlannedStage stage_in_panels(PlannedPanels planned, const DimClasses& dims, Outcome outcome) const {
    const Wanted wanted{planned.panels.value, true};
    planned.facts.limit_bytes = room_.bytes;
    Stage stage{{},           std::make_unique<DimClasses>(dims), {}, {wanted}, 0, planned.panels.slab, -1,
                planned.facts};
    return {std::move(stage), {std::move(outcome)}, std::move(planned.panels)};
  }

  static std::vector<Array> values_of(const std::vector<Wanted>& wanted) {
    std::vector<Array> values;
    for (const auto& w : wanted) values.push_back(w.value);
    return values;
  }

  // The nodes that a stage along the dim can compute: each joins those before it if none is refused then. A
  // file whose dim a later node may join to the streamed one is taken in advance; again without such files if
  // none did.
  std::vector<NodePtr> accepted_nodes(const Graph& graph, const DimClasses& dims,
                                      const StreamableDim& candidate, bool in_advance = true) {
    std::vector<NodePtr> accepted;
    std::set<const Node*> rejected;
    const int of_all = in_advance ? dims.of(*candidate.file, 0, candidate.dim) : -1;
    const auto roles_of_accepted = [&] {
      const DimClasses own = dims.joined_by(accepted);
      return roles_in({accepted, graph.leaves, {}}, own, own.of(*candidate.file, 0, candidate.dim));
    };
    for (const auto& node : graph.nodes) {
      const bool is_behind = std::any_of(node->inputs.begin(), node->inputs.end(),
                                         [&](const Array& x) { return rejected.contains(x.node().get()); });
      if (!is_behind) {
        accepted.push_back(node);
        const Roles roles = roles_of_accepted();
        if (roles.refusal.empty() && !takes_large_file(*node, roles, [&](const Array& file) {
              return in_advance && dims.dim_in(of_all, file) >= 0;
            }))
          continue;
        accepted.pop_back();
      }
      rejected.insert(node.get());
    }
    const Roles roles = roles_of_accepted();
    if (in_advance && std::ranges::any_of(accepted, [&](const NodePtr& node) {
          return takes_large_file(*node, roles, [](const Array&) { return false; });
        }))
      return accepted_nodes(graph, dims, candidate, false);
    return accepted;
  }
  // A file without the streamed dim would be read whole.
  template <class Except> bool takes_large_file(const Node& node, const Roles& roles, Except&& except) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Array& x) {
      return is_file(*x.node()) && roles.role(x).kind == Role::whole && x.nbytes() > room_.bytes / 4 &&
             !except(x);
    });
  }

  Frontier frontier_of(const Open& open, const Graph& graph, const Roles& roles) const {
    Frontier frontier;
    std::set<ValueId> known;
    const auto is_known = [&](const Array& x) { return roles.of.contains(x.node().get()); };
    for (std::size_t i = 0; i < open.values.size(); ++i)
      if (is_known(open.values[i])) {
        frontier.wanted.push_back(wanted_result(open, i));
        frontier.outcomes.push_back({open.results[i]});
      }
    for (const auto& node : graph.nodes) {
      if (roles.of.contains(node.get())) continue;
      for (const auto& x : node->inputs) {
        if (!is_known(x)) continue;
        const auto kind = roles.role(x).kind;
        if (is_order(*node) && x.ndim() == 1 && kind == Role::slab) {
          add_runs(frontier, node, x);
          continue;
        }
        if (is_file(*x.node()) || kind == Role::memory || is_parameter(*x.node()) ||
            !known.insert(id_of(x)).second)
          continue;
        frontier.wanted.push_back({x, kind == Role::slab});
        if (kind == Role::slab)
          frontier.outcomes.push_back({-1, spill_of(x)});
        else
          frontier.outcomes.push_back({-1, nullptr, make_placeholder(type_of(x), std::nullopt, nullptr, 0)});
      }
    }
    return frontier;
  }
  static bool is_order(const Node& node) { return node.op->name == "sort" || node.op->name == "argsort"; }
  // Sorted runs of the elements; for argsort also the positions that they had in their slab.
  static void add_runs(Frontier& frontier, const NodePtr& node, const Array& x) {
    const bool has_positions = node->op->name == "argsort";
    const OnBehalfOf call(node->called());
    const auto keys = spill_of(x);
    frontier.wanted.push_back({x, true, has_positions ? sort(x, 0).node() : node});
    frontier.outcomes.push_back({-1, keys});
    if (!has_positions) return;
    frontier.wanted.push_back({x, true, node});
    frontier.outcomes.push_back({-1, spill_of(Array(node, 0)), {}, keys});
  }
  static SpillFilePtr spill_of(const Array& x) {
    return std::make_shared<SpillFile>("temporary file", x.shape(), x.dtype());
  }

  // The open values recorded again on what the stage leaves; `held` grows by what stays in memory.
  Open rest_of(const Open& open, const Graph& graph, const PlannedStage& planned, std::int64_t& held) {
    const Stage& stage = planned.stage;
    Replaced replaced(graph);
    std::set<int> done;
    for (std::size_t i = 0; i < stage.wanted.size(); ++i) {
      const Outcome& outcome = planned.outcomes[i];
      const Array& x = stage.wanted[i].value;
      if (outcome.result >= 0) {
        done.insert(outcome.result);
        if (!request_.is_stored || stage.roles.role(x).kind != Role::slab) held += x.nbytes();
      } else if (outcome.placeholder.node()) {
        replaced.set(x, outcome.placeholder);
        held += x.nbytes();
      } else if (const NodePtr& sort = stage.wanted[i].sorted) {
        replaced.set_result(
            *sort, record_source(outcome.keys ? merged_positions(outcome.keys, outcome.spill, stage.length)
                                              : merged_source(outcome.spill, stage.length),
                                 numbers_));
      } else {
        const int dim = stage.dims->dim_in(stage.roles.dim_class, x);
        const auto width = static_cast<std::int64_t>(itemsize(x.dtype()));
        const auto block = (stage.length + device_count() - 1) / device_count();
        outcome.spill->set_tile(tile_for(x.shape(), dim, block, width));
        replaced.set(x, record_source(source_of_spill(outcome.spill), numbers_));
      }
    }
    Open rest;
    for (std::size_t i = 0; i < open.values.size(); ++i) {
      if (done.contains(open.results[i])) continue;
      rest.values.push_back(replaced.of(open.values[i]));
      rest.results.push_back(open.results[i]);
    }
    return rest;
  }

  const Request& request_;
  Room room_;
  FileNumbers numbers_;
  std::string refusals_;
  std::int64_t needed_bytes_ = 0;
  int searches_ = 0;
};

// The memory that a program needs that cannot be streamed, and where there is as much.
std::string cure_in_memory(std::int64_t needed, std::int64_t room) {
  const auto ranks = static_cast<std::int64_t>(device_count());
  const std::string load = " with FileArray::load(sharding), which splits it over the ranks, ";
  if (needed / ranks <= room)
    return "\nIt fits in memory: load the file" + load + "or compute that op's operand first";
  return "\nIn memory its operands and results take " + format_bytes(needed / ranks) + " on each of " +
         format_count(ranks, "rank") + ", of which each may use " + format_bytes(room) + ": load the file" +
         load + "on at least " + format_count((needed + room - 1) / std::max<std::int64_t>(1, room), "rank") +
         ", or raise TESSERA_MEM_LIMIT; or compute that op's operand first";
}

// A tenth of the limit is for messages and small blocks.
std::int64_t room_for(const Request& request) {
  const auto limit = request.memory_limit > 0 ? request.memory_limit : free_share();
  return limit - limit / 10;
}

io::StreamPlan facts_of(const Stages& stages) {
  io::StreamPlan facts = stages[0].stage.facts;
  for (std::size_t i = 1; i < stages.size(); ++i) {
    const auto& next = stages[i].stage.facts;
    facts.streamed += ", then " + next.streamed;
    facts.passes += next.passes, facts.seconds += next.seconds;
    facts.panels = std::max(facts.panels, next.panels);
    facts.bytes_read += next.bytes_read, facts.bytes_written += next.bytes_written;
    facts.bytes_spilled += next.bytes_spilled;
    facts.peak_bytes = std::max(facts.peak_bytes, next.peak_bytes);
  }
  facts.stages = std::ssize(stages);
  return facts;
}

}  // namespace

Plan plan_of(const Request& request) {
  const std::int64_t room = room_for(request);
  Search search(request, {room, request.slab, 0});
  Open open{request.values, {}};
  for (std::size_t i = 0; i < request.values.size(); ++i) open.results.push_back(static_cast<int>(i));
  auto best = search.find(open, 0, 0);
  const std::string& refusals = search.refusals();
  if (!best)
    throw ArgumentError(call_text() + ": no dim of the files can be streamed:" +
                        (refusals.empty() ? " they have none longer than 1" : refusals) +
                        cure_in_memory(search.needed_bytes(), room));
  Plan plan{std::move(*best), {}};
  plan.facts = facts_of(plan.stages);
  if (plan.facts.peak_bytes > room)
    throw MemoryError(
        call_text() + ": the program needs " + format_bytes(plan.facts.peak_bytes) +
        " on each rank with slabs of " + std::to_string(plan.facts.slab) + " along " + plan.facts.streamed +
        ", but a rank may use " + format_bytes(room) +
        (request.slab > 0 ? ". Ask for a shorter slab" : ". Use more ranks, or a larger memory_limit") +
        refusals);
  return plan;
}

}  // namespace tessera::stream
