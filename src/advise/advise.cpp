#include <tessera/jit/advise.hpp>
#include <tessera/runtime.hpp>

#include <algorithm>
#include <cstdio>
#include <ostream>
#include <sstream>
#include <utility>

#include "advise/search.hpp"
#include "base/call.hpp"
#include "base/text.hpp"
#include "base/text/seconds.hpp"

namespace tessera {
namespace {

// Bounds of the search behind a hint: explain stays quick.
constexpr int plans_for_a_hint = 24;
constexpr int most_hinted_ranks = 64;
constexpr std::size_t most_hinted_leaves = 8;

struct Ranked {
  LayoutSearch::Cost cost;
  std::vector<Sharding> shardings;
};

AdvisedLayout advised(const Ranked& ranked) {
  return {ranked.shardings,       ranked.cost.seconds, ranked.cost.bytes,
          ranked.cost.peak_bytes, ranked.cost.reason,  ranked.cost.excess == 0};
}

void check(const std::vector<detail::Leaf>& leaves, const AdviseOptions& options) {
  if (leaves.empty())
    throw ArgumentError(
        "advise: there is no array among the arguments; give those whose layouts are asked for");
  if (options.best < 1 || options.most_plans < 1 || options.memory_limit_bytes < 0)
    throw ArgumentError("advise: best is " + std::to_string(options.best) + ", most_plans " +
                        std::to_string(options.most_plans) + ", memory_limit_bytes " +
                        std::to_string(options.memory_limit_bytes) +
                        "; best and most_plans are 1 or more, the limit 0 (none) or more");
  for (const int leaf : options.keep) {
    if (leaf < 0 || leaf >= static_cast<int>(leaves.size()))
      throw ArgumentError("advise: keep names leaf " + std::to_string(leaf) + ", and the arguments have " +
                          format_count(static_cast<std::int64_t>(leaves.size()), "array") + ", from 0 on");
    if (!leaves[static_cast<std::size_t>(leaf)].given)
      throw ArgumentError("advise: keep names leaf " + std::to_string(leaf) +
                          ", which has no layout yet; device_put it first");
  }
}

// Rows that share the words of a choice: "P('x', None)" of each leaf.
std::string layouts_text(const std::vector<Sharding>& shardings) {
  std::string text;
  for (const auto& sharding : shardings) {
    std::ostringstream spec;
    spec << sharding.spec();
    text += (text.empty() ? "" : ", ") + spec.str();
  }
  return text;
}

std::string times_text(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", ratio);
  return text;
}

std::string mesh_text(const Mesh& mesh) {
  std::string text;
  for (const auto& [axis, size] : mesh.shape())
    text += (text.empty() ? "" : ",") + axis + "=" + std::to_string(size);
  return text;
}

}  // namespace

std::vector<Mesh> meshes_of(int ranks) {
  const Call call("meshes_of", std::source_location());
  if (ranks < 1) throw ArgumentError("meshes_of: " + std::to_string(ranks) + " ranks; there is at least one");
  std::vector<Mesh> meshes = {abstract_mesh({ranks}, {"x"})};
  for (int y = 2; y * y <= ranks; ++y)
    if (ranks % y == 0) meshes.push_back(abstract_mesh({ranks / y, y}, {"x", "y"}));
  return meshes;
}

namespace {

// The leaves with their choices on a mesh; kept ones have one choice.
std::vector<SearchedArray> searched(const std::vector<detail::Leaf>& leaves, const std::vector<int>& keep,
                                    const Mesh& mesh) {
  std::vector<SearchedArray> arrays;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const auto& leaf = leaves[i];
    auto& array = arrays.emplace_back(SearchedArray{leaf.shape, leaf.dtype, {}, 0});
    if (std::count(keep.begin(), keep.end(), static_cast<int>(i)) > 0) {
      array.choices.push_back(*leaf.given);
      continue;
    }
    for (auto& layout : layouts_of(mesh, leaf.shape)) {
      if (leaf.given && layout == *leaf.given) array.given = array.choices.size();
      array.choices.push_back(std::move(layout));
    }
  }
  return arrays;
}

std::vector<Sharding> named(const LayoutSearch::Layouts& layouts) {
  std::vector<Sharding> shardings;
  for (const auto& layout : layouts) shardings.push_back(*layout);
  return shardings;
}

std::vector<Sharding> given_layouts(const std::vector<detail::Leaf>& leaves) {
  std::vector<Sharding> given;
  for (const auto& leaf : leaves)
    if (leaf.given) given.push_back(*leaf.given);
  return given;
}

}  // namespace

detail::Leaf detail::leaf_of(const Array& x) {
  return {x.shape(), x.dtype(), x.is_committed() ? std::optional<Sharding>(x.sharding()) : std::nullopt};
}

Advice detail::advise(const std::vector<Leaf>& leaves, const AdviseOptions& options,
                      const PlanOfLayouts& plan) {
  check(leaves, options);
  auto meshes = options.meshes;
  if (meshes.empty()) meshes.push_back(make_mesh({device_count()}, {"x"}));
  Advice advice;
  std::vector<Ranked> found;
  std::string impossible;
  for (const auto& mesh : meshes) {
    LayoutSearch search(
        searched(leaves, options.keep, mesh), options.memory_limit_bytes,
        [&](const LayoutSearch::Layouts& layouts) { return plan(named(layouts)); },
        std::max(1, options.most_plans / static_cast<int>(meshes.size())));
    advice.is_exhaustive = search.run() && advice.is_exhaustive;
    advice.plans += static_cast<int>(search.costs().size());
    for (const auto& [choice, cost] : search.costs())
      if (cost.is_possible)
        found.push_back({cost, named(search.layouts_of_choice(choice))});
      else
        impossible = cost.reason;
  }
  if (found.empty()) throw ShardingError("advise: no layout can be planned; the last one: " + impossible);
  std::stable_sort(found.begin(), found.end(),
                   [](const Ranked& a, const Ranked& b) { return a.cost < b.cost; });
  for (const auto& ranked : found) {
    if (static_cast<int>(advice.best.size()) == options.best) break;
    advice.best.push_back(advised(ranked));
  }
  const auto given = given_layouts(leaves);
  if (given.size() == leaves.size()) {
    const Explanation own = plan(given);
    advice.given = {
        given,       own.predicted_seconds,
        own.bytes(), own.memory.peak_bytes,
        "",          options.memory_limit_bytes == 0 || own.memory.peak_bytes <= options.memory_limit_bytes};
  }
  return advice;
}

Explanation detail::with_hint(Explanation own, const std::vector<Leaf>& leaves, const PlanOfLayouts& plan) {
  const auto given = given_layouts(leaves);
  if (leaves.empty() || given.size() != leaves.size()) return own;
  const Mesh mesh = given[0].mesh();
  double moving = 0;
  for (const auto& row : own.collectives) moving += row.seconds;
  const bool all_replicated =
      std::all_of(given.begin(), given.end(), [](const Sharding& s) { return s.is_fully_replicated(); });
  const bool may_gain = moving > own.predicted_seconds / 10 || (all_replicated && mesh.size() > 1);
  const bool is_one_mesh =
      std::all_of(given.begin(), given.end(), [&](const Sharding& s) { return s.mesh() == mesh; });
  if (!may_gain || !is_one_mesh || leaves.size() > most_hinted_leaves || mesh.size() > most_hinted_ranks)
    return own;
  try {
    LayoutSearch search(
        searched(leaves, {}, mesh), 0,
        [&](const LayoutSearch::Layouts& layouts) { return plan(named(layouts)); }, plans_for_a_hint);
    search.run();
    const auto& best = *search.costs().find(search.best());
    const double ratio = own.predicted_seconds / best.second.seconds;
    if (best.second.is_possible && ratio > 1.5)
      own.hint = "with the arguments as " + layouts_text(named(search.layouts_of_choice(best.first))) +
                 " it would take " + format_seconds(best.second.seconds) + ", " + times_text(ratio) +
                 " times less (advise finds more)";
  } catch (const UserError&) {
    // Other layouts are refused: the given ones need no hint.
  }
  return own;
}

std::string to_string(const Advice& advice) {
  std::string text;
  int number = 0;
  for (const auto& layout : advice.best) {
    text += std::to_string(++number) + ". " + layouts_text(layout.shardings) + " over " +
            mesh_text(layout.shardings[0].mesh()) + ": " + format_seconds(layout.predicted_seconds) + ", " +
            format_bytes(layout.bytes) + " received, peak " + format_bytes(layout.peak_bytes) +
            (layout.is_within_memory_limit ? "" : ", over the memory limit") + "\n   " + layout.reason + "\n";
  }
  if (advice.given) {
    const double ratio = advice.given->predicted_seconds / advice.best[0].predicted_seconds;
    text += "given: " + layouts_text(advice.given->shardings) + ": " +
            format_seconds(advice.given->predicted_seconds) +
            (ratio > 1.5 ? ", " + times_text(ratio) + " times the best one's" : "") + "\n";
  }
  return text + format_count(advice.plans, "plan") +
         (advice.is_exhaustive ? ": every combination" : ": the best of a search") + "\n";
}

std::ostream& operator<<(std::ostream& out, const Advice& advice) { return out << to_string(advice); }

}  // namespace tessera
