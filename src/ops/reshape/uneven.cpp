// A rank's rows are a run of the flattened array, but not the run that it holds of the result:
//
//   (7, 4) over 4 ranks   rows  2 2 2 1   = elements  8 8 8 4
//   (28,)  over 4 ranks                               7 7 7 7
//
// Filled up to as many rows as make equal blocks they do agree, and (8, 4) -> (32,) moves nothing; what is
// left is a slice, in which ranks send their neighbours the few elements by which the runs are apart. The
// other way around, (28,) is first filled up to (32,).
#include "ops/reshape/uneven.hpp"

#include <optional>

#include "ops/functions.hpp"
#include "ops/index/remap_op.hpp"

namespace tessera {
namespace {

// Dims [first, last) of the operand hold the same elements as dims [to_first, to_last) of the result.
struct Run {
  std::size_t first, last, to_first, to_last;
};

std::vector<Run> runs_of(const Shape& from, const Shape& to) {
  std::vector<Run> runs;
  std::size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    Run run{i, i + 1, j, j + 1};
    std::int64_t a = from[i++], b = to[j++];
    while (a != b) a < b ? a *= from[i++] : b *= to[j++];
    run.last = i, run.to_last = j;
    runs.push_back(run);
  }
  return runs;
}

// x with `extent` indices of dim d: the first ones, or zeros behind them.
Array resized(const Array& x, std::size_t d, std::int64_t extent) {
  auto extents = x.shape().vector();
  Piece piece{
      0, {}, std::vector<std::int64_t>(extents.size(), 0), std::vector<std::int64_t>(extents.size(), 1)};
  const bool grows = extent > extents[d];
  for (std::size_t e = 0; e < extents.size(); ++e)
    piece.to.push_back({0, e == d ? std::min(extent, extents[e]) : extents[e]});
  extents[d] = extent;
  return remap(grows ? RemapName::pad : RemapName::slice, {Shape(std::move(extents)), {std::move(piece)}},
               {x});
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

// Dims [first, last) of x, of which the first is split in p blocks, become `to`.
Array regroup_uneven(Array x, std::size_t first, std::size_t last, std::vector<std::int64_t> to,
                     std::int64_t p) {
  const auto a = x.shape()[first], b = to[0];
  const auto rest = product(x.shape(), first + 1, last), to_rest = a * rest / b;
  if (a % p == 0 && b % p == 0) return regrouped(x, first, last, to);
  if (rest % to_rest == 0) {  // rows are taken apart
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

}  // namespace

Array with_agreeing_blocks(const Array& x, const Shape& shape) {
  const auto& sharding = output_of(x).sharding;
  if (!sharding || x.node()->region || x.size() == 0) return x;
  Array result = x;
  const auto dims = sharding->dim_axes(x.ndim());
  const auto runs = runs_of(x.shape(), shape);
  for (auto run = runs.rbegin(); run != runs.rend();
       ++run) {  // from the last: the places of those before stay
    std::size_t first = run->first, to_first = run->to_first;
    while (first + 1 < run->last && x.shape()[first] == 1) ++first;
    while (to_first + 1 < run->to_last && shape[to_first] == 1) ++to_first;
    const auto p = devices_along(sharding->mesh(), dims[first]);
    bool is_alone = true;
    for (std::size_t d = run->first; d < run->last; ++d) is_alone &= d == first || dims[d].empty();
    const auto rest = product(x.shape(), first + 1, run->last),
               to_rest = product(shape, to_first + 1, run->to_last);
    const bool are_equal = x.shape()[first] % p == 0 && shape[to_first] % p == 0;
    if (p == 1 || !is_alone || rest == to_rest || are_equal) continue;
    std::vector<std::int64_t> to;
    for (std::size_t d = to_first; d < run->to_last; ++d) to.push_back(shape[d]);
    result = regroup_uneven(result, first, run->last, std::move(to), p);
  }
  return result;
}

}  // namespace tessera
