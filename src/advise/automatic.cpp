// P::automatic: the layouts that a traced function leaves to the planner, found by the search of advise.
#include <tessera/jit.hpp>
#include <tessera/runtime.hpp>

#include <algorithm>
#include <utility>

#include "advise/search.hpp"
#include "base/text.hpp"
#include "base/text/seconds.hpp"
#include "ops/place/automatic.hpp"

namespace tessera {
namespace {

// The first named mesh of an options tree.
std::optional<Mesh> mesh_of(const ShardingTree& tree) {
  if (tree.is_leaf())
    return tree.value() && !tree.value()->has_mesh_to_find() ? std::optional(tree.value()->mesh())
                                                             : std::nullopt;
  for (const auto& child : tree.children())
    if (auto mesh = mesh_of(child)) return mesh;
  return std::nullopt;
}

// The mesh for P::automatic alone: that of the first committed argument, else of the options' shardings, else
// one axis over all devices.
Mesh mesh_to_use(const detail::TraceRequest& request) {
  for (const auto& leaf : request.leaves)
    if (leaf.node() && leaf.is_committed()) return leaf.sharding().mesh();
  for (const auto* options : {&request.options.in_shardings, &request.options.out_shardings})
    if (auto mesh = mesh_of(*options)) return *mesh;
  return make_mesh({device_count()}, {"x"});
}

SearchedArray searched(const AutomaticLayouts::Place& place) {
  SearchedArray array{place.type.shape, place.type.dtype, {}, 0};
  if (place.may_stay_open) array.choices.emplace_back();
  for (auto& layout : layouts_of(place.mesh, place.type.shape)) array.choices.emplace_back(std::move(layout));
  return array;
}

std::vector<ChosenLayout> chosen(const AutomaticLayouts& layouts) {
  std::vector<ChosenLayout> all;
  for (std::size_t i = 0; i < layouts.places().size(); ++i)
    all.push_back({layouts.places()[i].name, layouts.chosen(i)});
  return all;
}

constexpr int most_plans = 400;

}  // namespace

detail::TracedPtr detail::trace_with_layouts(const TraceRequest& request,
                                             const std::function<TracedPtr()>& trace) {
  if (open_layouts() != nullptr) return trace();
  AutomaticLayouts layouts([&] { return mesh_to_use(request); });
  const AutomaticScope scope(&layouts);
  auto traced = trace();
  if (layouts.places().empty()) return traced;
  std::vector<SearchedArray> arrays;
  for (const auto& place : layouts.places()) arrays.push_back(searched(place));
  const auto choose = [&](const LayoutSearch::Layouts& choice) {
    for (std::size_t i = 0; i < choice.size(); ++i) layouts.choose(i, choice[i]);
  };
  LayoutSearch search(
      std::move(arrays), request.options.memory_limit_bytes,
      [&](const LayoutSearch::Layouts& choice) {
        choose(choice);
        return compiled_explanation(*compile_traced(trace()));
      },
      most_plans);
  const bool is_exhaustive = search.run();
  const auto& best = *search.costs().find(search.best());
  if (!best.second.is_possible)
    throw ShardingError("P::automatic: no layout can be planned; " + best.second.reason);
  choose(search.layouts_of_choice(best.first));
  traced = trace();
  note_layouts(
      *traced, chosen(layouts),
      "the least of " + format_count(static_cast<std::int64_t>(search.costs().size()), "plan") +
          (is_exhaustive ? ", all there are: " : " of a search: ") + format_seconds(best.second.seconds) +
          " (" + best.second.reason + ")" +
          (best.second.excess > 0 ? "; over the memory limit by " + format_bytes(best.second.excess) : ""));
  return traced;
}

}  // namespace tessera
