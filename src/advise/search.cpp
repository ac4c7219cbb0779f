#include "advise/search.hpp"

#include <algorithm>
#include <cstdio>
#include <tuple>
#include <utility>

#include <tessera/error.hpp>

#include "base/text.hpp"
#include "base/text/seconds.hpp"

namespace tessera {
namespace {

std::int64_t bytes_of(const SearchedArray& array) {
  return array.shape.elements() * static_cast<std::int64_t>(itemsize(array.dtype));
}

// "all-reduce of matmul at train.cpp:12 18.2 us; arithmetic 40 us"
std::string reason_of(const Explanation& plan) {
  auto rows = plan.collectives;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  double moving = 0;
  for (const auto& row : rows) moving += row.seconds;
  std::string text = "arithmetic " + format_seconds(std::max(0.0, plan.predicted_seconds - moving));
  constexpr std::size_t most_rows = 2;
  for (std::size_t i = 0; i < std::min(rows.size(), most_rows); ++i)
    text += ", " + rows[i].kind + " for " + rows[i].what + " " + format_seconds(rows[i].seconds);
  if (rows.size() > most_rows)
    text += " and " + format_count(static_cast<std::int64_t>(rows.size() - most_rows), "other");
  return text;
}

}  // namespace

std::int64_t blocks_along(const Sharding& layout, const Shape& shape, int dim) {
  std::int64_t blocks = 1;
  const auto axes = layout.dim_axes(shape.ndim());
  const Mesh mesh = layout.mesh();
  for (const int axis : axes[static_cast<std::size_t>(dim)])
    blocks *= mesh.axis_sizes()[static_cast<std::size_t>(axis)];
  return blocks;
}

std::vector<Sharding> layouts_of(const Mesh& mesh, const Shape& shape) {
  const auto& sizes = mesh.axis_sizes();
  const int ndim = shape.ndim();
  std::vector<Sharding> layouts;
  std::vector<int> dim_of(sizes.size(), -1);  // of each axis
  while (true) {
    std::vector<std::vector<int>> axes(static_cast<std::size_t>(ndim));
    std::vector<std::int64_t> blocks(static_cast<std::size_t>(ndim), 1);
    for (std::size_t a = 0; a < sizes.size(); ++a)
      if (dim_of[a] >= 0) {
        axes[static_cast<std::size_t>(dim_of[a])].push_back(static_cast<int>(a));
        blocks[static_cast<std::size_t>(dim_of[a])] *= sizes[a];
      }
    bool has_empty_blocks = false;
    for (std::size_t d = 0; d < blocks.size(); ++d)
      has_empty_blocks = has_empty_blocks || (blocks[d] > 1 && blocks[d] > shape[d]);
    if (!has_empty_blocks) layouts.push_back(Sharding::from_dim_axes(mesh, axes));
    std::size_t a = 0;
    for (; a < sizes.size(); ++a) {
      if (sizes[a] == 1) continue;  // splits nothing
      if (++dim_of[a] < ndim) break;
      dim_of[a] = -1;
    }
    if (a == sizes.size()) return layouts;
  }
}

bool LayoutSearch::Cost::operator<(const Cost& other) const {
  return std::tuple(!is_possible, excess, seconds, bytes, peak_bytes) <
         std::tuple(!other.is_possible, other.excess, other.seconds, other.bytes, other.peak_bytes);
}

LayoutSearch::LayoutSearch(std::vector<SearchedArray> arrays, std::int64_t memory_limit_bytes, Plan plan,
                           int most_plans)
    : arrays_(std::move(arrays)),
      memory_limit_bytes_(memory_limit_bytes),
      plan_(std::move(plan)),
      most_plans_(most_plans) {
  std::map<std::string, std::vector<std::size_t>> of_type;
  for (std::size_t i = 0; i < arrays_.size(); ++i)
    if (arrays_[i].choices.size() > 1)
      of_type[name(arrays_[i].dtype) + to_string(arrays_[i].shape) + " of " +
              std::to_string(arrays_[i].choices.size())]
          .push_back(i);
  for (const auto& [type, members] : of_type) groups_.push_back(members);
  // Large arrays first, whole groups before their members.
  std::stable_sort(groups_.begin(), groups_.end(), [&](const auto& a, const auto& b) {
    return bytes_of(arrays_[a[0]]) > bytes_of(arrays_[b[0]]);
  });
  moves_ = groups_;
  for (const auto& group : groups_)
    if (group.size() > 1)
      for (const auto array : group) moves_.push_back({array});
}

LayoutSearch::Layouts LayoutSearch::layouts_of_choice(const Choice& choice) const {
  Layouts layouts;
  for (std::size_t i = 0; i < choice.size(); ++i)
    layouts.push_back(arrays_[i].choices[static_cast<std::size_t>(choice[i])]);
  return layouts;
}

const LayoutSearch::Choice& LayoutSearch::best() const {
  return std::min_element(costs_.begin(), costs_.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

const LayoutSearch::Cost& LayoutSearch::cost_of(const Choice& choice) {
  const auto [at, is_new] = costs_.try_emplace(choice);
  if (!is_new) return at->second;
  try {
    const Explanation plan = plan_(layouts_of_choice(choice));
    Cost& cost = at->second;
    cost.seconds = plan.predicted_seconds;
    cost.bytes = plan.bytes();
    cost.peak_bytes = plan.memory.peak_bytes;
    if (memory_limit_bytes_ > 0)
      cost.excess = std::max<std::int64_t>(0, cost.peak_bytes - memory_limit_bytes_);
    cost.reason = reason_of(plan);
  } catch (const ShardingError& error) {  // these layouts do not go together
    at->second.is_possible = false;
    at->second.reason = error.what();
  }
  return at->second;
}

bool LayoutSearch::run() {
  double combinations = 1;
  for (const auto& array : arrays_) combinations *= static_cast<double>(array.choices.size());
  if (combinations <= most_plans_) {
    Choice choice(arrays_.size(), 0);
    try_all(choice, 0);
    return true;
  }
  for (const auto& beginning : beginnings())
    if (may_plan()) descend(beginning);
  return false;
}

void LayoutSearch::try_all(Choice& choice, std::size_t leaf) {
  if (leaf == choice.size()) {
    cost_of(choice);
    return;
  }
  for (std::size_t c = 0; c < arrays_[leaf].choices.size(); ++c) {
    choice[leaf] = static_cast<int>(c);
    try_all(choice, leaf + 1);
  }
}

// Dim 0 of every array by all axes, where it can: data-parallel programs. Then the last dims, the given
// layouts and the first choices (replicated): what is split everywhere is seldom far from the best.
std::vector<LayoutSearch::Choice> LayoutSearch::beginnings() const {
  const Choice first(arrays_.size(), 0);
  std::vector<Choice> all;
  for (const bool last : {false, true}) {
    Choice split = first;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      const auto& [shape, dtype, choices, own] = arrays_[i];
      std::int64_t most = 1;
      for (std::size_t c = 0; c < choices.size(); ++c) {
        if (!choices[c] || shape.ndim() == 0) continue;
        const auto blocks = blocks_along(*choices[c], shape, last ? shape.ndim() - 1 : 0);
        if (blocks > most) most = blocks, split[i] = static_cast<int>(c);
      }
    }
    all.push_back(split);
  }
  Choice given = first;
  for (std::size_t i = 0; i < arrays_.size(); ++i) given[i] = static_cast<int>(arrays_[i].given);
  all.push_back(given);
  all.push_back(first);
  return all;
}

bool LayoutSearch::improve(Choice& choice, const std::vector<std::size_t>& together) {
  const Choice before = choice;
  Choice best = choice;
  for (std::size_t c = 0; c < arrays_[together[0]].choices.size() && may_plan(); ++c) {
    Choice tried = before;
    for (const auto array : together) tried[array] = static_cast<int>(c);
    if (cost_of(tried) < cost_of(best)) best = tried;
  }
  choice = best;
  return best != before;
}

// Two groups at once, where neither alone helps.
bool LayoutSearch::improve_pairs(Choice& choice) {
  for (std::size_t a = 0; a < groups_.size() && a < 3; ++a)
    for (std::size_t b = a + 1; b < groups_.size() && b < 4; ++b) {
      const Choice before = choice;
      for (std::size_t c = 0; c < arrays_[groups_[a][0]].choices.size() && may_plan(); ++c) {
        Choice tried = before;
        for (const auto array : groups_[a]) tried[array] = static_cast<int>(c);
        improve(tried, groups_[b]);
        if (cost_of(tried) < cost_of(before)) return choice = tried, true;
      }
    }
  return false;
}

void LayoutSearch::descend(Choice choice) {
  cost_of(choice);
  for (bool goes_on = true; goes_on && may_plan();) {
    goes_on = false;
    for (const auto& together : moves_)
      if (may_plan()) goes_on = improve(choice, together) || goes_on;
    goes_on = goes_on || improve_pairs(choice);
  }
}

}  // namespace tessera
