// Collectives by axis name: inside shard_map, pmap and vmap(axis_name).
//
// `axis` is a name or axes("x", "y"), the first name major: ranks are numbered x * size(y) + y. A name of a
// vmap means the examples of the batch: then the collective is arithmetic of one rank. Trees are mapped leaf
// by leaf; x stands for one leaf, n for the axis size.
//
//   psum pmean pmax pmin   the reduction, on every rank. bool: psum counts (int32), pmax is or, pmin is and.
//     Integers wrap.
//   psum_scatter           the sum, of which rank i keeps block i along scatter_dimension
//   all_gather             the ranks' x along `axis`: a new dimension of size n, or (tiled) concatenated
//   all_to_all             block j along split_axis goes to rank j, what arrives is put together along
//     concat_axis
//   ppermute               (source, destination) pairs; a rank that no pair names as destination gets zeros
//
// axis_index_groups: lists of rank numbers that together name every rank once; each group works for itself.
// Errors, on every rank: AxisNameError for a name that no surrounding transformation binds; ArgumentError
// for wrong groups or permutations; ShapeError for sizes that do not fit; IndexError for dimensions out of
// range.
#pragma once
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/tree.hpp>

namespace tessera {

using Groups = std::vector<std::vector<int>>;

class AxisName {
 public:
  AxisName(const char* name) : names_{name} {}
  AxisName(std::string name) : names_{std::move(name)} {}
  AxisName(DimSpec dim) : names_(dim.names()) {}
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
};

struct ReduceOptions {
  Groups axis_index_groups = {};
};
struct PsumScatterOptions {
  int scatter_dimension = 0;
  bool tiled = false;
  Groups axis_index_groups = {};
};
struct AllGatherOptions {
  int axis = 0;
  bool tiled = false;
  Groups axis_index_groups = {};
};
struct AllToAllOptions {
  bool tiled = false;
  Groups axis_index_groups = {};
};

using CallSite = std::source_location;

// The number of ranks (or examples) along the axis.
int axis_size(AxisName axis, CallSite where = CallSite::current());
// This rank's place among them, int32.
Array axis_index(AxisName axis, CallSite where = CallSite::current());

namespace detail {
Array psum_leaf(const Array&, const AxisName&, const Groups&, CallSite);
Array pmean_leaf(const Array&, const AxisName&, const Groups&, CallSite);
Array pmax_leaf(const Array&, const AxisName&, const Groups&, CallSite);
Array pmin_leaf(const Array&, const AxisName&, const Groups&, CallSite);
Array psum_scatter_leaf(const Array&, const AxisName&, const PsumScatterOptions&, CallSite);
Array all_gather_leaf(const Array&, const AxisName&, const AllGatherOptions&, CallSite);
Array all_to_all_leaf(const Array&, const AxisName&, int split_axis, int concat_axis, const AllToAllOptions&,
                      const char* call, CallSite);
Array ppermute_leaf(const Array&, const AxisName&, const std::vector<std::pair<int, int>>&, const char* call,
                    CallSite);
Array pbroadcast_leaf(const Array&, const AxisName&, int source, CallSite);
std::vector<std::pair<int, int>> pairs_of_shuffle(const AxisName&, const std::vector<int>& perm, CallSite);
int reduced_size(const AxisName&, const Groups&, const char* call, CallSite);

using ReducedLeaf = Array (*)(const Array&, const AxisName&, const Groups&, CallSite);
// A plain number is the same on every rank, and so is its mean, largest and smallest.
template <class T> T reduced(const T& x, const AxisName& axis, const ReduceOptions& options, const char* call,
                             ReducedLeaf reduced_leaf, CallSite where) {
  if constexpr (std::is_arithmetic_v<T>)
    return reduced_size(axis, options.axis_index_groups, call, where), x;
  else
    return tree_map(
        [&](const Array& leaf) { return reduced_leaf(leaf, axis, options.axis_index_groups, where); }, x);
}
}  // namespace detail

// A plain number is the same on every rank: psum multiplies it by n, the others return it.
template <class T>
T psum(const T& x, AxisName axis, ReduceOptions options = {}, CallSite where = CallSite::current()) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(
        x * static_cast<T>(detail::reduced_size(axis, options.axis_index_groups, "psum", where)));
  else
    return tree_map(
        [&](const Array& leaf) { return detail::psum_leaf(leaf, axis, options.axis_index_groups, where); },
        x);
}
template <class T>
T pmean(const T& x, AxisName axis, ReduceOptions options = {}, CallSite where = CallSite::current()) {
  return detail::reduced(x, axis, options, "pmean", detail::pmean_leaf, where);
}
template <class T>
T pmax(const T& x, AxisName axis, ReduceOptions options = {}, CallSite where = CallSite::current()) {
  return detail::reduced(x, axis, options, "pmax", detail::pmax_leaf, where);
}
template <class T>
T pmin(const T& x, AxisName axis, ReduceOptions options = {}, CallSite where = CallSite::current()) {
  return detail::reduced(x, axis, options, "pmin", detail::pmin_leaf, where);
}

template <class T> T psum_scatter(const T& x, AxisName axis, PsumScatterOptions options = {},
                                  CallSite where = CallSite::current()) {
  return tree_map([&](const Array& leaf) { return detail::psum_scatter_leaf(leaf, axis, options, where); },
                  x);
}
template <class T>
T all_gather(const T& x, AxisName axis, AllGatherOptions options = {}, CallSite where = CallSite::current()) {
  return tree_map([&](const Array& leaf) { return detail::all_gather_leaf(leaf, axis, options, where); }, x);
}
// Not tiled: x.shape[split_axis] is n; that dimension goes and one of size n is inserted at concat_axis.
// Tiled: the split dimension shrinks to 1/n, the other grows n times.
template <class T> T all_to_all(const T& x, AxisName axis, int split_axis, int concat_axis,
                                AllToAllOptions options = {}, CallSite where = CallSite::current()) {
  return tree_map(
      [&](const Array& leaf) {
        return detail::all_to_all_leaf(leaf, axis, split_axis, concat_axis, options, "all_to_all", where);
      },
      x);
}
template <class T> T ppermute(const T& x, AxisName axis, std::vector<std::pair<int, int>> perm,
                              CallSite where = CallSite::current()) {
  return tree_map(
      [&](const Array& leaf) { return detail::ppermute_leaf(leaf, axis, perm, "ppermute", where); }, x);
}
// Rank i gets the x of rank perm[i].
template <class T>
T pshuffle(const T& x, AxisName axis, std::vector<int> perm, CallSite where = CallSite::current()) {
  const auto pairs = detail::pairs_of_shuffle(axis, perm, where);
  return tree_map(
      [&](const Array& leaf) { return detail::ppermute_leaf(leaf, axis, pairs, "pshuffle", where); }, x);
}
// Exchanges the mapped axis with dimension `dim` of x, whose size is n.
template <class T> T pswapaxes(const T& x, AxisName axis, int dim, CallSite where = CallSite::current()) {
  return tree_map(
      [&](const Array& leaf) {
        return detail::all_to_all_leaf(leaf, axis, dim, dim, {}, "pswapaxes", where);
      },
      x);
}
template <class T> T pbroadcast(const T& x, AxisName axis, int source, CallSite where = CallSite::current()) {
  return tree_map([&](const Array& leaf) { return detail::pbroadcast_leaf(leaf, axis, source, where); }, x);
}
// Elementwise the number (int32) of the rank with the largest / smallest x, the lowest of equals.
Array pargmax(const Array& x, AxisName axis, CallSite where = CallSite::current());
Array pargmin(const Array& x, AxisName axis, CallSite where = CallSite::current());

}  // namespace tessera
