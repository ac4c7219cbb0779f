/// @file
/// More of jax.lax: slices whose position is a value, branches by number, loops over slices, scans of any
/// associative function, bits reinterpreted as other types.
///
/// All functions record and are not collective unless stated otherwise; errors are raised on every rank when
/// recorded.
#pragma once
#include <cstdint>
#include <functional>
#include <source_location>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/control.hpp>
#include <tessera/ops.hpp>

namespace tessera {

/// @name Slices whose position is a value
/// @{

/// The part of x of these sizes that begins at `starts`, one scalar integer per dim, arrays or numbers. As in
/// JAX a start is clamped so that the part is inside. Along a split dim ranks fetch the elements of the part
/// that others hold. ShapeError for sizes larger than x or another number of them, DtypeError for starts that
/// are not integers.
Array dynamic_slice(const Operand& x, const std::vector<Array>& starts, Shape sizes);
/// x with the part that begins at `starts` replaced by `update`; otherwise as dynamic_slice.
Array dynamic_update_slice(const Operand& x, const Operand& update, const std::vector<Array>& starts);
/// The same bits as elements of another type (jax.lax.bitcast_convert_type). Smaller elements make a new last
/// dim; larger ones consume the last dim, which must have the matching extent. Moves nothing unless that dim
/// is split. Has no derivative. DtypeError for bool and complex numbers, ShapeError for a last dim of another
/// extent.
Array bitcast_convert_type(const Operand& x, Dtype dtype);
/// @}

namespace detail {
template <std::size_t from, std::size_t count, class Branches, class... A>
auto run_branch(const Operand& index, const Branches& branches, const A&... args) {
  if constexpr (count == 1) {
    return std::get<from>(branches)(args...);
  } else {
    constexpr std::size_t half = count / 2;
    return cond(
        Operand(index.array < static_cast<std::int64_t>(from + half), index.where),
        [&](const A&... a) { return run_branch<from, half>(index, branches, a...); },
        [&](const A&... a) { return run_branch<from + half, count - half>(index, branches, a...); }, args...);
  }
}
void check_branch_index(const Array& index, std::source_location);
std::int64_t leading_extent(const std::vector<Array>& leaves, int axis, const char* call,
                            std::source_location);
// Interleaves even and odd elements along an axis.
Array interleaved(const Array& even, const Array& odd, int axis);
Array part_along(const Array& x, int axis, std::int64_t start, std::int64_t stop, std::int64_t step);
}  // namespace detail

/// branches[index](args...): runs one of a tuple of functions (jax.lax.switch; `switch` is a C++ keyword). An
/// index out of range selects the first or the last. Collective outside a trace, like cond.
template <class... F, class... A>
auto switch_(const Operand& index, const std::tuple<F...>& branches, const A&... args) {
  static_assert(sizeof...(F) > 0, "switch_: there are no branches");
  detail::check_branch_index(index.array, index.where);
  return detail::run_branch<0, sizeof...(F)>(index, branches, args...);
}

/// f of each slice along the leading dim of xs, one after the other, with stacked results (jax.lax.map): a
/// scan without a carry, for work that would be too large at once. vmap processes all slices at once.
template <class F, class X>
auto sequential_map(F f, X xs, std::source_location where = std::source_location::current()) {
  const auto step = [&](const Array& nothing, const auto& x) { return std::pair{nothing, f(x)}; };
  return scan(step, zeros({}, float32, where), std::move(xs), where).second;
}

/// f(x0), f(x0, x1), f(f(x0, x1), x2), ... along an axis of the arrays of a tree, for an associative f of two
/// trees, which is called on parts of the arrays (jax.lax.associative_scan): about 2 log2(n) calls,
/// neighbours exchange slices. With `reverse` from the end. ShapeError if the extents along the axis differ.
template <class F, class T> T associative_scan(F f, T xs, bool reverse = false, int axis = 0,
                                               std::source_location where = std::source_location::current()) {
  auto leaves = tree_leaves(xs);
  const auto n = detail::leading_extent(leaves, axis, "associative_scan", where);
  const auto map = [&](const T& tree, const auto& of_leaf) {
    return tree_map([&](const Array& leaf) { return of_leaf(leaf); }, tree);
  };
  if (reverse) {
    const auto flipped = [&](const T& tree) {
      return map(tree, [&](const Array& x) { return flip(x, axis); });
    };
    return flipped(associative_scan(f, flipped(xs), false, axis, where));
  }
  if (n < 2) return xs;
  const auto part = [&](const T& tree, std::int64_t start, std::int64_t stop, std::int64_t step) {
    return map(tree, [&](const Array& x) { return detail::part_along(x, axis, start, stop, step); });
  };
  // Combines neighbours to pairs, scans the pairs recursively, and computes the elements in between:
  //   x0 x1 x2 x3 x4  ->  01 23  ->  01 0123  ->  0 01 012 0123 01234
  const T pairs = f(part(xs, 0, n - n % 2, 2), part(xs, 1, n, 2));
  const T odd = associative_scan(f, pairs, false, axis, where);
  const T later = n == 2 ? part(xs, 0, 0, 1) : f(part(odd, 0, (n - 1) / 2, 1), part(xs, 2, n, 2));
  const auto first = tree_leaves(part(xs, 0, 1, 1)), rest = tree_leaves(later), odds = tree_leaves(odd);
  std::vector<Array> all;
  for (std::size_t i = 0; i < odds.size(); ++i)
    all.push_back(detail::interleaved(concatenate({first[i], rest[i]}, axis, where), odds[i], axis));
  return detail::with_leaves(xs, all);
}

}  // namespace tessera
