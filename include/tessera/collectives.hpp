/// @file
/// Collectives by axis name: inside shard_map, pmap and vmap(axis_name).
///
/// `axis` is a name or axes("x", "y"), the first name major: ranks are numbered x * size(y) + y. A name of a
/// vmap refers to the examples of the batch: the collective is then arithmetic on one rank. Trees are mapped
/// leaf by leaf; x stands for one leaf, n for the axis size.
///
/// **Collective** over the ranks along the axis: each of them must record the same calls in the same order,
/// which SPMD programs do naturally. Ranks communicate when a result is computed, not when it is recorded.
///
/// **Gradients** are those of JAX (the table stands in src/ops/collective). pmax and pmin have none.
///
/// **Errors**, on every rank when recorded: AxisNameError for a name that no surrounding transformation
/// binds; ArgumentError for wrong groups or permutations; ShapeError for sizes that do not fit; IndexError
/// for dimensions out of range.
#pragma once
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/tree.hpp>

namespace tessera {

/// Lists of rank numbers that together contain every rank once; each group communicates separately.
using Groups = std::vector<std::vector<int>>;

/// One mesh axis or several: "x" or axes("x", "y").
class AxisName {
 public:
  /// From a name, or from axes(...).
  AxisName(const char* name) : names_{name} {}
  AxisName(std::string name) : names_{std::move(name)} {}
  AxisName(DimSpec dim) : names_(dim.names()) {}
  const std::vector<std::string>& names() const { return names_; }  ///< the major one first

 private:
  std::vector<std::string> names_;
};

/// Options of psum, pmean, pmax and pmin.
struct ReduceOptions {
  Groups axis_index_groups = {};  ///< groups of ranks that work together; empty: all ranks
};
/// Options of psum_scatter.
struct PsumScatterOptions {
  int scatter_dimension = 0;  ///< the dim that is scattered
  bool tiled = false;         ///< the dim shrinks to 1/n and remains; otherwise it has size n and is removed
  Groups axis_index_groups = {};  ///< groups of ranks that work together; empty: all ranks
};
/// Options of all_gather.
struct AllGatherOptions {
  int axis = 0;        ///< the dim along which blocks are joined
  bool tiled = false;  ///< the blocks are concatenated; otherwise they are stacked along a new dimension
  Groups axis_index_groups = {};  ///< groups of ranks that work together; empty: all ranks
};
/// Options of all_to_all.
struct AllToAllOptions {
  bool tiled = false;             ///< the split dim shrinks to 1/n; otherwise it has size n and is removed
  Groups axis_index_groups = {};  ///< groups of ranks that work together; empty: all ranks
};

using CallSite = std::source_location;  ///< the line of the call

/// The number of ranks (or examples) along the axis. Not collective.
int axis_size(AxisName axis, CallSite where = CallSite::current());
/// This rank's index along the axis: an int32 scalar that differs between ranks. Not collective: records.
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
/// A plain number is the same on every rank, and so is its mean, largest and smallest.
template <class T> T reduced(const T& x, const AxisName& axis, const ReduceOptions& options, const char* call,
                             ReducedLeaf reduced_leaf, CallSite where) {
  if constexpr (std::is_arithmetic_v<T>)
    return reduced_size(axis, options.axis_index_groups, call, where), x;
  else
    return tree_map(
        [&](const Array& leaf) { return reduced_leaf(leaf, axis, options.axis_index_groups, where); }, x);
}
}  // namespace detail

/// The sum, on every rank: one all-reduce if needed (sums of partial sums are combined once). bool counts
/// (int32), integers wrap. A plain number is the same on every rank: its sum is n times the number.
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
/// The mean, on every rank: one all-reduce. A plain number is its own mean.
template <class T>
T pmean(const T& x, AxisName axis, ReduceOptions options = {}, CallSite where = CallSite::current()) {
  return detail::reduced(x, axis, options, "pmean", detail::pmean_leaf, where);
}
/// The largest element, on every rank; NaN if there is one. One all-reduce; for bool the logical or.
template <class T>
T pmax(const T& x, AxisName axis, ReduceOptions options = {}, CallSite where = CallSite::current()) {
  return detail::reduced(x, axis, options, "pmax", detail::pmax_leaf, where);
}
/// The smallest element, on every rank; NaN if there is one. One all-reduce; for bool the logical and.
template <class T>
T pmin(const T& x, AxisName axis, ReduceOptions options = {}, CallSite where = CallSite::current()) {
  return detail::reduced(x, axis, options, "pmin", detail::pmin_leaf, where);
}

/// The sum, scattered: rank i keeps block i along scatter_dimension. One reduce-scatter.
template <class T> T psum_scatter(const T& x, AxisName axis, PsumScatterOptions options = {},
                                  CallSite where = CallSite::current()) {
  return tree_map([&](const Array& leaf) { return detail::psum_scatter_leaf(leaf, axis, options, where); },
                  x);
}
/// The ranks' x along an axis, on every rank: one all-gather. Stacked along a new dim of size n, or (tiled)
/// concatenated.
template <class T>
T all_gather(const T& x, AxisName axis, AllGatherOptions options = {}, CallSite where = CallSite::current()) {
  return tree_map([&](const Array& leaf) { return detail::all_gather_leaf(leaf, axis, options, where); }, x);
}
/// Sends block j along split_axis to rank j, and joins the received blocks along concat_axis: one all-to-all.
/// Untiled, x.shape[split_axis] is n; that dim is removed and one of size n is inserted at concat_axis.
/// Tiled: the split dim shrinks to 1/n, the other grows n times.
template <class T> T all_to_all(const T& x, AxisName axis, int split_axis, int concat_axis,
                                AllToAllOptions options = {}, CallSite where = CallSite::current()) {
  return tree_map(
      [&](const Array& leaf) {
        return detail::all_to_all_leaf(leaf, axis, split_axis, concat_axis, options, "all_to_all", where);
      },
      x);
}
/// Sends x along (source, destination) pairs, each rank at most once on either side; a rank that is no
/// destination gets zeros. One collective-permute.
template <class T> T ppermute(const T& x, AxisName axis, std::vector<std::pair<int, int>> perm,
                              CallSite where = CallSite::current()) {
  return tree_map(
      [&](const Array& leaf) { return detail::ppermute_leaf(leaf, axis, perm, "ppermute", where); }, x);
}
/// Rank i receives the x of rank perm[i]: one collective-permute.
template <class T>
T pshuffle(const T& x, AxisName axis, std::vector<int> perm, CallSite where = CallSite::current()) {
  const auto pairs = detail::pairs_of_shuffle(axis, perm, where);
  return tree_map(
      [&](const Array& leaf) { return detail::ppermute_leaf(leaf, axis, pairs, "pshuffle", where); }, x);
}
/// Exchanges the mapped axis with dim `dim` of x, whose size is n: one all-to-all.
template <class T> T pswapaxes(const T& x, AxisName axis, int dim, CallSite where = CallSite::current()) {
  return tree_map(
      [&](const Array& leaf) {
        return detail::all_to_all_leaf(leaf, axis, dim, dim, {}, "pswapaxes", where);
      },
      x);
}
/// The x of rank `source`, on every rank.
template <class T> T pbroadcast(const T& x, AxisName axis, int source, CallSite where = CallSite::current()) {
  return tree_map([&](const Array& leaf) { return detail::pbroadcast_leaf(leaf, axis, source, where); }, x);
}
/// Elementwise the index (int32) of the rank with the largest x, the lowest one of ties. Two all-reduces.
Array pargmax(const Array& x, AxisName axis, CallSite where = CallSite::current());
/// The same for the smallest x.
Array pargmin(const Array& x, AxisName axis, CallSite where = CallSite::current());

}  // namespace tessera
