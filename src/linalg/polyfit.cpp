// The nearest polynomial, by least squares on powers scaled to equal norm, as in numpy.polyfit.
#include <tessera/linalg.hpp>
#include <tessera/ops/arrange.hpp>
#include <tessera/ops/numeric.hpp>

#include "ops/build.hpp"
#include "ops/functions.hpp"

namespace tessera {

Array polyfit(const Operand& x, const Operand& y, int degree) {
  const Call call("polyfit", x.where);
  check_usable(x.array);
  check_usable(y.array);
  if (x.array.ndim() != 1 || y.array.shape() != x.array.shape())
    throw ShapeError(call_text() + ": the points have shapes " + to_string(x.array.shape()) + " and " +
                     to_string(y.array.shape()) + "; both must have one dimension and the same size");
  if (degree < 0 || degree >= x.array.size())
    throw ArgumentError(call_text() + ": " + std::to_string(x.array.size()) +
                        " points do not determine degree " + std::to_string(degree));
  const Dtype dtype = to_inexact(promote(WeakDtype{x.array.dtype(), x.array.is_weakly_typed()},
                                         WeakDtype{y.array.dtype(), y.array.is_weakly_typed()})
                                     .dtype);
  const Array powers = vander(cast_to(x.array, dtype), degree + 1);
  const Array length = sqrt(sum(square(abs(powers)), 0));
  return linalg::lstsq(powers / length, cast_to(y.array, dtype)) / length;
}

}  // namespace tessera
