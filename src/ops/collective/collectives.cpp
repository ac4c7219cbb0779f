// The public collectives: they look up names, check arguments and reduce untiled forms to tiled ones. An axis
// that mixes vmap names with mesh axes is processed step by step.
#include <tessera/collectives.hpp>

#include <algorithm>
#include <limits>
#include <set>

#include "ops/build.hpp"
#include "ops/collective/axis_env.hpp"
#include "ops/collective/collective.hpp"
#include "ops/collective/manual.hpp"
#include "ops/create/scalar.hpp"
#include "ops/functions.hpp"
#include "types/extents.hpp"

namespace tessera {
namespace {

struct Axis {
  std::vector<CollectiveParams> steps;  // first major; neighbouring mesh axes are one step
  std::int64_t size = 1;
  std::string text;  // 'x', 'y'
};

Axis resolve(const AxisName& name) {
  Axis axis;
  std::set<std::string> seen;
  for (const auto& n : name.names()) {
    if (!seen.insert(n).second)
      throw AxisNameError(call_text() + ": the axis '" + n + "' is named twice; name each axis once");
    const auto& binding = find_axis(n);
    axis.size *= binding.size;
    axis.text += (axis.text.empty() ? "'" : ", '") + n + "'";
    const bool joins = !axis.steps.empty() && axis.steps.back().frame == 0 && binding.frame == 0;
    if (!joins) {
      axis.steps.emplace_back();
      axis.steps.back().frame = binding.frame;
      axis.steps.back().index = binding.index;
    }
    auto& step = axis.steps.back();
    if (binding.frame == 0) step.axes.push_back(binding.mesh_axis);
    step.size *= binding.size;
    step.names += (step.names.empty() ? "" : ",") + n;
  }
  return axis;
}

std::string groups_text(const Groups& groups) { return field_text(groups); }

// Every rank must be in exactly one group.
void check_groups(const Groups& groups, const Axis& axis, bool equal_sizes) {
  if (groups.empty()) return;
  const auto refuse = [&](const std::string& why) {
    throw ArgumentError(call_text() + ": axis_index_groups " + groups_text(groups) + " over axis " +
                        axis.text + " of size " + std::to_string(axis.size) + ": " + why +
                        ". The groups together must name each of 0.." + std::to_string(axis.size - 1) +
                        " once");
  };
  if (axis.steps.size() > 1) refuse("groups over a mix of vmap names and mesh axes are not defined");
  std::vector<int> count(axis.size);
  for (const auto& group : groups) {
    if (group.empty()) refuse("a group is empty");
    if (equal_sizes && group.size() != groups[0].size())
      refuse("the groups have " + std::to_string(groups[0].size()) + " and " + std::to_string(group.size()) +
             " members, but " + current_call().name + " needs groups of equal size");
    for (const int member : group) {
      if (member < 0 || member >= axis.size) refuse("there is no rank " + std::to_string(member));
      if (++count[member] > 1) refuse("rank " + std::to_string(member) + " is named twice");
    }
  }
  for (std::size_t i = 0; i < count.size(); ++i)
    if (count[i] == 0) refuse("rank " + std::to_string(i) + " is in no group");
}

std::int64_t group_size(const Groups& groups, const Axis& axis) {
  return groups.empty() ? axis.size : static_cast<std::int64_t>(groups[0].size());
}

// x as seen inside the innermost mapped function, where the step applies.
Array for_step(const Array& x, const CollectiveParams& step) {
  if (step.frame != 0) return x;
  ShapeLog::note(x.shape());
  return brought_inside(x, current_region());
}

Array run_step(const OpDef& op, CollectiveParams step, const Array& x) {
  return record_collective(op, step, for_step(x, step));
}

void check_divides(const Array& x, int dim, std::int64_t n, const Axis& axis) {
  if (x.shape()[dim] % n != 0)
    throw ShapeError(call_text() + ": dimension " + std::to_string(dim) + " of shape " +
                     to_string(x.shape()) + " has " + std::to_string(x.shape()[dim]) +
                     " elements, which do not make " + std::to_string(n) + " equal blocks (axis " +
                     axis.text + "); pad it to a multiple of " + std::to_string(n));
}
void check_equals(const Array& x, int dim, std::int64_t n, const Axis& axis) {
  if (x.shape()[dim] != n)
    throw ShapeError(call_text() + ": dimension " + std::to_string(dim) + " of shape " +
                     to_string(x.shape()) + " must have the size " + std::to_string(n) + " of the axis " +
                     axis.text + ", one element per rank; use tiled = true to split it into blocks");
}

Array extremum(const Array& x, const AxisName& name, const Groups& groups, bool largest) {
  check_usable(x);
  if (is_complex(x.dtype()))
    throw DtypeError(call_text() + ": complex numbers have no order; take it of abs(x)");
  const auto axis = resolve(name);
  check_groups(groups, axis, false);
  Array result = x;
  for (auto step : axis.steps) {
    step.groups = groups;
    result = for_step(result, step);
    if (!groups.empty()) {
      result = record_collective(largest ? pmax_groups_op : pmin_groups_op, step, result);
      continue;
    }
    const auto varying = output_of(result).varying;
    if (step.frame == 0) std::erase_if(step.axes, [&](int a) { return (varying >> a & 1) == 0; });
    if (step.frame != 0 || !step.axes.empty())
      result = record_collective(largest ? pmax_op : pmin_op, step, result);
  }
  return result;
}

// A permutation over both vmap names and mesh axes: every rank holds all its examples side by side, sends
// them one by one, and keeps those that arrived for it.
Array permute_mixed(const Array& x, const Axis& axis, const std::vector<std::pair<int, int>>& pairs) {
  // A rank's number over the axis becomes (example, rank): the digits of vmap steps and those of mesh steps.
  CollectiveParams ranks;
  std::int64_t examples = 1;
  const auto split = [&](int number) {
    std::pair<int, int> digits{0, 0};
    int scale_example = 1, scale_rank = 1;
    for (std::size_t s = axis.steps.size(); s-- > 0;) {
      const int size = static_cast<int>(axis.steps[s].size), digit = number % size;
      number /= size;
      int& scale = axis.steps[s].frame != 0 ? scale_example : scale_rank;
      (axis.steps[s].frame != 0 ? digits.first : digits.second) += digit * scale;
      scale *= size;
    }
    return digits;
  };
  Array all = expand_dims(x, 0), example = make_scalar(0, int32);
  for (std::size_t s = axis.steps.size(); s-- > 0;)
    if (axis.steps[s].frame != 0) all = run_step(all_gather_op, axis.steps[s], all);
  for (const auto& step : axis.steps) {
    if (step.frame != 0) {
      examples *= step.size;
      example = example * step.size + step.index;
    } else {
      ranks.axes.insert(ranks.axes.end(), step.axes.begin(), step.axes.end());
      ranks.size *= step.size;
      ranks.names += (ranks.names.empty() ? "" : ",") + step.names;
    }
  }
  Array result = zeros_like(x);
  for (int to = 0; to < examples; ++to)
    for (int from = 0; from < examples; ++from) {
      auto step = ranks;
      for (const auto& [source, destination] : pairs)
        if (split(source).first == from && split(destination).first == to)
          step.pairs.emplace_back(split(source).second, split(destination).second);
      if (step.pairs.empty()) continue;
      const Array sent = run_step(ppermute_op, step, index(all, {IndexPart(from)}));
      result = result + tessera::where(example == to, sent, zeros_like(sent));
    }
  return result;
}

}  // namespace

int axis_size(AxisName name, CallSite where) {
  const Call call("axis_size", where);
  return static_cast<int>(resolve(name).size);
}

Array axis_index(AxisName name, CallSite where) {
  const Call call("axis_index", where);
  Array place;
  for (const auto& step : resolve(name).steps) {
    const Array digit = step.frame != 0 ? step.index : place_along(current_region(), step.axes);
    place = place.node() ? place * step.size + digit : digit;
  }
  return place.node() ? place : make_scalar(0, int32);
}

namespace detail {

int reduced_size(const AxisName& name, const Groups& groups, const char* call, CallSite where) {
  const Call here(call, where);
  const auto axis = resolve(name);
  check_groups(groups, axis, true);
  return static_cast<int>(group_size(groups, axis));
}

Array psum_leaf(const Array& x, const AxisName& name, const Groups& groups, CallSite where) {
  const Call call("psum", where);
  check_usable(x);
  const auto axis = resolve(name);
  check_groups(groups, axis, false);
  Array result = is_bool(x.dtype()) ? astype(x, int32) : x;
  for (auto step : axis.steps) {
    step.groups = groups;
    result = for_step(result, step);
    if (!groups.empty())
      result = record_collective(psum_groups_op, step, result);
    else if (step.frame != 0)
      result = record_collective(psum_op, step, result);
    else
      result = sum_over(result, step.axes);
  }
  return result;
}

Array pmean_leaf(const Array& x, const AxisName& name, const Groups& groups, CallSite where) {
  const Call call("pmean", where);
  const Array total = psum_leaf(x, name, groups, where);
  const bool equal = std::all_of(groups.begin(), groups.end(),
                                 [&](const auto& group) { return group.size() == groups[0].size(); });
  if (equal) return divide(total, group_size(groups, resolve(name)));
  return divide(total,
                psum_leaf(make_scalar(1, is_inexact(total.dtype()) ? real_dtype(total.dtype()) : int32), name,
                          groups, where));
}

Array pmax_leaf(const Array& x, const AxisName& name, const Groups& groups, CallSite where) {
  const Call call("pmax", where);
  return extremum(x, name, groups, true);
}
Array pmin_leaf(const Array& x, const AxisName& name, const Groups& groups, CallSite where) {
  const Call call("pmin", where);
  return extremum(x, name, groups, false);
}

Array all_gather_leaf(const Array& x, const AxisName& name, const AllGatherOptions& options, CallSite where) {
  const Call call("all_gather", where);
  check_usable(x);
  const auto axis = resolve(name);
  check_groups(options.axis_index_groups, axis, true);
  const int dim = checked_dim(options.axis, x.ndim() + (options.tiled ? 0 : 1));
  Array result = options.tiled ? x : expand_dims(x, dim);
  for (std::size_t s = axis.steps.size();
       s-- > 0;) {  // the minor axis first: its blocks end up next to each other
    auto step = axis.steps[s];
    step.groups = options.axis_index_groups;
    step.dim = dim;
    result = run_step(all_gather_op, std::move(step), result);
  }
  return result;
}

Array psum_scatter_leaf(const Array& x, const AxisName& name, const PsumScatterOptions& options,
                        CallSite where) {
  const Call call("psum_scatter", where);
  check_usable(x);
  const auto axis = resolve(name);
  check_groups(options.axis_index_groups, axis, true);
  const int dim = checked_dim(options.scatter_dimension, x.ndim());
  const auto n = group_size(options.axis_index_groups, axis);
  options.tiled ? check_divides(x, dim, n, axis) : check_equals(x, dim, n, axis);
  Array result = is_bool(x.dtype()) ? astype(x, int32) : x;
  for (auto step : axis.steps) {
    step.groups = options.axis_index_groups;
    step.dim = dim;
    result = run_step(psum_scatter_op, std::move(step), result);
  }
  return options.tiled ? result : squeeze(result, Axes(dim));
}

Array all_to_all_leaf(const Array& x, const AxisName& name, int split_axis, int concat_axis,
                      const AllToAllOptions& options, const char* call, CallSite where) {
  const Call here(call, where);
  check_usable(x);
  const auto axis = resolve(name);
  check_groups(options.axis_index_groups, axis, true);
  int split = checked_dim(split_axis, x.ndim());
  int concat = checked_dim(concat_axis, x.ndim());
  const auto n = group_size(options.axis_index_groups, axis);
  options.tiled ? check_divides(x, split, n, axis) : check_equals(x, split, n, axis);
  Array result = x;
  const bool inserts = !options.tiled && split != concat;
  if (inserts) {  // concat is counted without the split dim
    if (split < concat)
      ++concat;
    else
      ++split;
    result = expand_dims(result, concat);
  }
  if (axis.steps.size() <= 1) {
    for (auto step : axis.steps) {
      step.groups = options.axis_index_groups;
      step.dim = split;
      step.other = concat;
      result = run_step(all_to_all_op, std::move(step), result);
    }
  } else {
    // The split dim becomes digits: each step exchanges its own digit in place, and afterwards the digits
    // number the source of each block.
    Shape extents = result.shape();
    const auto m = static_cast<int>(axis.steps.size());
    extents[split] /= n;
    for (int s = m; s-- > 0;) extents = with_dim(extents, split, axis.steps[s].size);
    const auto target = [&] {
      Shape shape = result.shape();
      shape[split] /= n;
      shape[concat] *= n;
      return shape;
    }();
    result = reshape(result, extents);
    for (int s = 0; s < m; ++s) {
      auto step = axis.steps[s];
      step.dim = step.other = split + s;
      result = run_step(all_to_all_op, std::move(step), result);
    }
    std::vector<int> order;
    for (int d = 0; d < result.ndim(); ++d)
      if (d < split || d >= split + m) order.push_back(d);
    std::vector<int> digits;
    for (int s = 0; s < m; ++s) digits.push_back(split + s);
    order.insert(order.begin() + concat, digits.begin(), digits.end());
    result = reshape(transpose(result, std::move(order)), target);
  }
  return inserts ? squeeze(result, Axes(split)) : result;
}

Array ppermute_leaf(const Array& x, const AxisName& name, const std::vector<std::pair<int, int>>& pairs,
                    const char* call, CallSite where) {
  const Call here(call, where);
  check_usable(x);
  const auto axis = resolve(name);
  std::set<int> sources, destinations;
  for (const auto& [source, destination] : pairs) {
    const auto refuse = [&](const std::string& why) {
      throw ArgumentError(call_text() + ": the permutation " + field_text(pairs) + " over axis " + axis.text +
                          " of size " + std::to_string(axis.size) + ": " + why +
                          ". Each pair is (source, destination); each rank may send once and receive once");
    };
    for (const int rank : {source, destination})
      if (rank < 0 || rank >= axis.size) refuse("there is no rank " + std::to_string(rank));
    if (!sources.insert(source).second) refuse("rank " + std::to_string(source) + " is a source twice");
    if (!destinations.insert(destination).second)
      refuse("rank " + std::to_string(destination) + " is a destination twice");
  }
  if (axis.steps.size() > 1) return permute_mixed(x, axis, pairs);
  Array result = x;
  for (auto step : axis.steps) {
    step.pairs = pairs;
    result = run_step(ppermute_op, std::move(step), result);
  }
  return result;
}

std::vector<std::pair<int, int>> pairs_of_shuffle(const AxisName& name, const std::vector<int>& perm,
                                                  CallSite where) {
  const Call call("pshuffle", where);
  const auto axis = resolve(name);
  if (static_cast<std::int64_t>(perm.size()) != axis.size)
    throw ArgumentError(call_text() + ": the permutation " + field_text(perm) + " has " +
                        std::to_string(perm.size()) + " entries, but axis " + axis.text + " has the size " +
                        std::to_string(axis.size) + "; entry i is the rank whose value rank i gets");
  std::vector<std::pair<int, int>> pairs;
  for (std::size_t i = 0; i < perm.size(); ++i) pairs.emplace_back(perm[i], static_cast<int>(i));
  return pairs;
}

Array pbroadcast_leaf(const Array& x, const AxisName& name, int source, CallSite where) {
  const Call call("pbroadcast", where);
  check_usable(x);
  const auto axis = resolve(name);
  if (source < 0 || source >= axis.size)
    throw ArgumentError(call_text() + ": the source " + std::to_string(source) + " is not a rank of axis " +
                        axis.text + ", which has the size " + std::to_string(axis.size));
  Array result = x;
  std::int64_t rest = axis.size;
  for (auto step : axis.steps) {
    rest /= step.size;
    step.pairs = {{static_cast<int>(source / rest % step.size), -1}};
    result = run_step(pbroadcast_op, std::move(step), result);
  }
  return result;
}

}  // namespace detail

namespace {

Array place_of_extremum(const Array& x, const AxisName& name, bool largest) {
  const Array best = extremum(x, name, {}, largest), place = axis_index(name);
  const Array nobody = make_scalar({0, std::numeric_limits<std::int32_t>::max(), true}, int32, false);
  return extremum(tessera::where(equal(x, best), place, nobody), name, {}, false);
}

}  // namespace

Array pargmax(const Array& x, AxisName axis, CallSite where) {
  const Call call("pargmax", where);
  return place_of_extremum(x, axis, true);
}
Array pargmin(const Array& x, AxisName axis, CallSite where) {
  const Call call("pargmin", where);
  return place_of_extremum(x, axis, false);
}

}  // namespace tessera
