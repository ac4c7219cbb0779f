// take with a rule for indices out of range. One layer above the op, because "raise" reads values.
#include <limits>

#include <tessera/array.hpp>
#include <tessera/detail/loops.hpp>
#include <tessera/ops.hpp>

#include "kernels/visit.hpp"
#include "ops/build.hpp"
#include "ops/index/static_index.hpp"
#include "types/extents.hpp"

namespace tessera {
namespace {

// JAX's fill value for invalid indices: a conspicuous one.
Array conspicuous(Dtype dtype) {
  if (is_inexact(dtype)) return astype(std::numeric_limits<double>::quiet_NaN(), dtype);
  if (is_bool(dtype)) return true;
  return kernels::visit(dtype, []<class T>(T) {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return full({}, std::is_signed_v<T> ? Limits::min() : Limits::max(), dtype_of<T>());
    else
      return Array();
  });
}

// Appends dims of extent 1 to x for the dims of the slices.
Array in_front_of_slices(const Array& x, int slice_dims) {
  return reshape(x, with_ones(x.shape(), x.shape().size() + static_cast<std::size_t>(slice_dims)));
}

void refuse_outside(const Array& is_outside, std::int64_t extent, int dim, std::source_location where) {
  if (detail::is_unknown(is_outside))
    throw ArgumentError(call_text() +
                        ": mode \"raise\" looks at the indices, which have no values while a function is "
                        "traced; take \"fill\", which shows them as NaN, or check before the call");
  const auto outside = item<std::int64_t>(sum(is_outside), where);
  if (outside > 0)
    throw IndexError(call_text() + ": " + std::to_string(outside) + " of " +
                     std::to_string(is_outside.size()) + " indices are out of range for dimension " +
                     std::to_string(dim) + " of extent " + std::to_string(extent) + "; they must be in [" +
                     std::to_string(-extent) + ", " + std::to_string(extent) + ")");
}

}  // namespace

Array take(const Operand& x, const Operand& indices, int axis, const std::string& mode) {
  const Call call("take", x.where);
  if (mode != "clip" && mode != "wrap" && mode != "fill" && mode != "raise")
    throw ArgumentError(call_text() + ": there is no mode \"" + mode + "\"; take clip, wrap, fill or raise");
  const Array clipped = take_clamped(x, indices, axis);
  if (mode == "clip") return clipped;
  const int dim = checked_dim(axis, x.array.ndim());
  const std::int64_t extent = x.array.shape()[dim];
  const Array places = astype(indices.array, int64);
  if (mode == "wrap") return take_clamped(x, remainder(places, extent), axis);
  const Array is_outside = (places < -extent) | (places >= extent);
  if (mode == "raise") {
    refuse_outside(is_outside, extent, dim, x.where);
    return clipped;
  }
  return where(in_front_of_slices(is_outside, x.array.ndim() - dim - 1), conspicuous(clipped.dtype()),
               clipped);
}

}  // namespace tessera
