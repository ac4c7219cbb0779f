// Reshapes of arrays whose blocks are uneven. A rank's rows are consecutive elements of the flattened array,
// but the blocks of the result begin and end elsewhere:
//
//   (7, 4) over 4 ranks   rows  2 2 2 1   = elements  8 8 8 4
//   (28,)  over 4 ranks                               7 7 7 7
//
// Padded to equal blocks of rows they agree, and (8, 4) -> (32,) moves nothing; the remaining step is a
// slice, in which ranks send their neighbours the few elements by which the blocks differ. In the other
// direction, (28,) is first padded to (32,).
//
// Columns are not consecutive elements: a split of a minor dim first becomes a split of the rows
// (all-to-all), or, if there are fewer rows than ranks, of the joined rows. In the other direction, a first
// dim with fewer rows than ranks takes the mesh axes that fit it, and the next dim takes the others:
//
//   rank 0 [a b] [e f]   P(-, x)  ->  rank 0 [a b c d]   P(x)       (16,) -> (4, 4), x = 2, y = 4: P(x, y)
//   rank 1 [c d] [g h]                rank 1 [e f g h]
#include "ops/reshape/uneven.hpp"

#include <algorithm>

#include "mesh/factors.hpp"
#include "ops/functions.hpp"
#include "ops/index/remap_op.hpp"

namespace tessera {
namespace {

// Dims [first, last) of the operand hold the same elements as dims [to_first, to_last) of the result.
struct DimGroup {
  std::size_t first, last, to_first, to_last;
};

std::vector<DimGroup> runs_of(const Shape& from, const Shape& to) {
  std::vector<DimGroup> runs;
  std::size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    DimGroup run{i, i + 1, j, j + 1};
    std::int64_t a = from[i++], b = to[j++];
    while (a != b) a < b ? a *= from[i++] : b *= to[j++];
    run.last = i, run.to_last = j;
    runs.push_back(run);
  }
  return runs;
}

// x with `extent` indices of dim d: its first ones, or padded with zeros.
Array resized(const Array& x, std::size_t d, std::int64_t extent) {
  Shape extents = x.shape();
  RemapPiece piece{
      0, {}, std::vector<std::int64_t>(extents.size(), 0), std::vector<std::int64_t>(extents.size(), 1)};
  for (std::size_t e = 0; e < extents.size(); ++e)
    piece.to.push_back({0, e == d ? std::min(extent, extents[e]) : extents[e]});
  extents[d] = extent;
  return remap({extents, {std::move(piece)}}, {x});
}

std::int64_t product(const Shape& shape, std::size_t first, std::size_t last) {
  std::int64_t result = 1;
  for (std::size_t d = first; d < last; ++d) result *= shape[d];
  return result;
}

// x with dims [first, last) replaced by `extents`.
Array regrouped(const Array& x, std::size_t first, std::size_t last,
                const std::vector<std::int64_t>& extents) {
  auto all = x.shape().vector();
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(first),
            all.begin() + static_cast<std::ptrdiff_t>(last));
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(first), extents.begin(), extents.end());
  return reshape(x, Shape(std::move(all)));
}

std::int64_t up(std::int64_t n, std::int64_t p) { return (n + p - 1) / p; }

// Regroups dims [first, last) of x, the first of which is split in p blocks, to `to`.
Array regroup_uneven(Array x, std::size_t first, std::size_t last, std::vector<std::int64_t> to,
                     std::int64_t p) {
  const auto a = x.shape()[first], b = to[0];
  const auto rest = product(x.shape(), first + 1, last), to_rest = a * rest / b;
  if (a % p == 0 && b % p == 0) return regrouped(x, first, last, to);
  if (rest % to_rest == 0) {  // rows are split
    x = resized(x, first, p * up(a, p));
    to[0] = p * up(a, p) * (rest / to_rest);
  } else if (to_rest % rest == 0) {  // rows are joined
    x = resized(x, first, p * up(b, p) * (to_rest / rest));
    to[0] = p * up(b, p);
  } else {
    return regroup_uneven(regroup_uneven(x, first, last, {a * rest}, p), first, first + 1, std::move(to), p);
  }
  return resized(regrouped(x, first, last, to), first, b);
}

DimAxes axes_of(const Array& x) { return output_of(x).sharding->dim_axes(x.ndim()); }
Sharding split_by(const Array& x, const DimAxes& dims) {
  return Sharding::from_dim_axes(output_of(x).sharding->mesh(), dims);
}
std::int64_t parts_of(const Array& x, const MeshAxes& axes) {
  return devices_along(output_of(x).sharding->mesh(), axes);
}

// Joins the rows of dims (d, d + 1): (lead, n) -> (1, lead n), split by `axes` along d + 1.
Array rows_joined(const Array& x, std::size_t d, const MeshAxes& axes) {
  Shape extents = x.shape();
  const auto lead = extents[d], n = extents[d + 1];
  extents[d] = 1, extents[d + 1] = lead * n;
  auto dims = axes_of(x);
  dims[d].clear(), dims[d + 1] = axes;
  RemapParams p{extents, {}, {0, 0, true}, {}, split_by(x, dims)};
  for (std::int64_t row = 0; row < lead; ++row) {
    RemapPiece piece = whole_piece(0, p.shape, std::vector<std::int64_t>(p.shape.size(), 0));
    piece.to[d + 1] = {row * n, (row + 1) * n};
    piece.offset[d] = row, piece.offset[d + 1] = -row * n;
    p.pieces.push_back(std::move(piece));
  }
  return remap(std::move(p), {x});
}

// The inverse: (1, rows c) -> (rows, c). Dim d takes as many of d + 1's axes as it has rows for.
Array rows_cut(const Array& x, std::size_t d, std::int64_t rows) {
  Shape extents = x.shape();
  const auto c = extents[d + 1] / rows;
  extents[d] = rows, extents[d + 1] = c;
  auto dims = axes_of(x);
  auto rest = dims[d + 1];
  const auto fits = [&] {
    auto more = dims[d];
    more.push_back(rest.front());
    return parts_of(x, more) <= rows;
  };
  while (!rest.empty() && fits()) dims[d].push_back(rest.front()), rest.erase(rest.begin());
  dims[d + 1] = std::move(rest);
  RemapParams p{extents, {}, {0, 0, true}, {}, split_by(x, dims)};
  for (std::int64_t row = 0; row < rows; ++row) {
    RemapPiece piece = whole_piece(0, p.shape, std::vector<std::int64_t>(p.shape.size(), 0));
    piece.to[d] = {row, row + 1};
    piece.offset[d] = -row, piece.offset[d + 1] = row * c;
    p.pieces.push_back(std::move(piece));
  }
  return remap(std::move(p), {x});
}

// Moves all splits of dims [first, minor] of x, the last of which is split, to the first: as (lead, n), or as
// one dim of lead n if there are fewer rows than parts.
Array with_major_split(Array x, std::size_t first, std::size_t minor) {
  const auto lead = product(x.shape(), first, minor), n = x.shape()[minor];
  x = regrouped(x, first, minor + 1, {lead, n});
  auto dims = axes_of(x);
  MeshAxes axes = dims[first];
  axes.insert(axes.end(), dims[first + 1].begin(), dims[first + 1].end());
  if (lead < parts_of(x, axes)) return regrouped(rows_joined(x, first, axes), first, first + 2, {lead * n});
  dims[first] = axes, dims[first + 1].clear();
  return device_put(x, split_by(x, dims));
}

// Regroups dims [first, last) of x, some of which are split, to `to`.
Array regroup_split(Array x, std::size_t first, std::size_t last, std::vector<std::int64_t> to) {
  auto dims = axes_of(x);
  std::size_t minor = last - 1;
  while (dims[minor].empty()) --minor;
  if (minor > first) {
    const auto behind = x.shape().size() - last;
    x = with_major_split(x, first, minor);
    last = x.shape().size() - behind;
    dims = axes_of(x);
  }
  const auto p = parts_of(x, dims[first]);
  if (to[0] >= p || to.size() == 1) return regroup_uneven(x, first, last, std::move(to), p);
  const auto total = product(x.shape(), first, last);
  x = rows_cut(regrouped(regrouped(x, first, last, {total}), first, first + 1, {1, total}), first, to[0]);
  return regrouped(x, first + 1, first + 2, {to.begin() + 1, to.end()});
}

// Whether each mesh axis that splits dims [first, last) of x can split a factor of both shapes.
bool keeps_its_splits(const Array& x, const DimGroup& run, const Shape& to) {
  const auto dims = axes_of(x);
  const auto at = [](const auto& all, std::size_t first, std::size_t last) {
    return std::vector(all.begin() + static_cast<std::ptrdiff_t>(first),
                       all.begin() + static_cast<std::ptrdiff_t>(last));
  };
  const Sharding own = split_by(x, at(dims, run.first, run.last));
  const FactorRule rule = reshape_rule(Shape(at(x.shape().vector(), run.first, run.last)),
                                       Shape(at(to.vector(), run.to_first, run.to_last)));
  const auto factors = factors_of(rule, own, 0, false);
  return is_allowed(rule, factors, own.mesh()) && sharding_of(rule, factors, own.mesh(), 0, false) == own;
}

}  // namespace

Array with_agreeing_blocks(const Array& x, const Shape& shape) {
  const auto& sharding = output_of(x).sharding;
  if (!sharding || x.node()->region || x.size() == 0) return x;
  Array result = x;
  const auto runs = runs_of(x.shape(), shape);
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {  // from the last: earlier positions stay valid
    const auto dims = axes_of(result);  // a later run's regrouping may have gathered a dim of extent 1
    std::size_t first = run->first, to_first = run->to_first;
    while (first + 1 < run->last && x.shape()[first] == 1 && dims[first].empty()) ++first;
    while (to_first + 1 < run->to_last && shape[to_first] == 1) ++to_first;
    const bool is_split = std::any_of(dims.begin() + static_cast<std::ptrdiff_t>(first),
                                      dims.begin() + static_cast<std::ptrdiff_t>(run->last),
                                      [](const MeshAxes& axes) { return !axes.empty(); });
    if (!is_split || keeps_its_splits(x, *run, shape)) continue;
    std::vector<std::int64_t> to;
    for (std::size_t d = to_first; d < run->to_last; ++d) to.push_back(shape[d]);
    result = regroup_split(result, first, run->last, std::move(to));
  }
  return result;
}

}  // namespace tessera
