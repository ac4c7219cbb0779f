#include "stream/spill/extremes.hpp"

#include <tessera/ops.hpp>

#include "ops/position_dtype.hpp"
#include "ops/reduce/arg_reduce.hpp"
#include "ops/sort/cumulative.hpp"

namespace tessera::stream {
namespace {

Array extreme_of(const Array& x, int dim, bool is_max) {
  return is_max ? max(x, dim, true) : min(x, dim, true);
}

// 1 at the elements that equal the extremum, or are NaN like it; otherwise 0.
Array hits_in(const Array& x, int dim, bool is_max) {
  const Array extreme = extreme_of(x, dim, is_max);
  const Array equals = is_inexact(x.dtype()) ? where(isnan(extreme), isnan(x), x == extreme) : x == extreme;
  return astype(equals, position_dtype(x.shape()[static_cast<std::size_t>(dim)]));
}

// The number of elements before the first hit.
Array first_of(const Array& hits, int dim) {
  return sum(1 - cumulative(ReduceKind::max, hits, dim, false), dim);
}

// The position in row-major order: that of the first row with the extremum, then the place in it.
Array position_in_rows(const Array& x, bool is_max) {
  const auto columns = x.shape()[1];
  const Dtype wide = position_dtype(x.size());
  const Array of_rows = reshape(extreme_of(x, 1, is_max), {x.shape()[0]});
  const Array hits = hits_in(of_rows, 0, is_max);
  const Array is_first = cumulative(ReduceKind::sum, hits, 0, false) * hits == 1;
  const Array in_row = astype(is_max ? argmax(x, 1) : argmin(x, 1), wide);
  return astype(first_of(hits, 0), wide) * columns + sum(where(is_first, in_row, zeros_like(in_row)), 0);
}

}  // namespace

Array position_of_extreme(const Array& x, int dim, bool is_max) {
  if (dim != ArgParams::all_dims) return first_of(hits_in(x, dim, is_max), dim);
  if (x.ndim() == 1) return first_of(hits_in(x, 0, is_max), 0);
  const auto rows = x.shape()[0];
  if (rows == 1) return position_of_extreme(reshape(x, {x.size()}), 0, is_max);
  return position_in_rows(x.ndim() == 2 ? x : reshape(x, {rows, x.size() / rows}), is_max);
}

}  // namespace tessera::stream
