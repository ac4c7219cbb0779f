// |z| of complex numbers, in vectors.
#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/complex/magnitude.cpp"
#include <hwy/foreach_target.h>

#include <cmath>
#include <complex>
#include <limits>

#include "kernels/elementwise/complex/magnitude.hpp"
#include "kernels/elementwise/map_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

// Squares of float32 are exact in float64, and no sum of two overflows. An infinite part gives infinity, even
// if the other part is NaN.
void MagnitudeOfFloats(const void* const* in, void* out, std::int64_t n) {
  const auto* a = static_cast<const float*>(in[0]);
  auto* r = static_cast<float*>(out);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (std::int64_t i = 0; i < n; ++i) {
    const float x = a[2 * i], y = a[2 * i + 1];
    const double u = x, v = y;
    const auto size = static_cast<float>(__builtin_sqrt(u * u + v * v));
    const bool is_infinite = (__builtin_fabsf(x) == infinity) | (__builtin_fabsf(y) == infinity);
    r[i] = is_infinite ? infinity : size;
  }
}

// float64 uses squares if the larger part is not near the ends of the exponents, else hypot. The choice is
// made per number, so that its bits do not depend on its neighbours.
inline bool has_safe_squares(double x, double y) {
  const double larger = x > y ? x : y;
  return (x <= 0x1p400) & (y <= 0x1p400) & ((larger >= 0x1p-400) | (larger == 0));
}
void MagnitudeOfDoubles(const void* const* in, void* out, std::int64_t n) {
  const auto* a = static_cast<const double*>(in[0]);
  auto* r = static_cast<double*>(out);
  constexpr std::int64_t group = 64;
  for (std::int64_t first = 0; first < n; first += group) {
    const std::int64_t count = n - first < group ? n - first : group;
    const double* const part = a + 2 * first;
    double sizes[group];
    bool are_safe = true;
    for (std::int64_t l = 0; l < count; ++l) {
      const double x = __builtin_fabs(part[2 * l]), y = __builtin_fabs(part[2 * l + 1]);
      sizes[l] = __builtin_sqrt(x * x + y * y);
      are_safe &= has_safe_squares(x, y);
    }
    for (std::int64_t l = 0; l < count && !are_safe; ++l)
      if (!has_safe_squares(std::fabs(part[2 * l]), std::fabs(part[2 * l + 1])))
        sizes[l] = std::hypot(part[2 * l], part[2 * l + 1]);
    for (std::int64_t l = 0; l < count; ++l) r[first + l] = sizes[l];
  }
}

void AddMagnitudes(MapTable& table) {
  table.add(map<"abs">, 1, complex64, MagnitudeOfFloats, float32);
  table.add(map<"abs">, 1, complex128, MagnitudeOfDoubles, float64);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(AddMagnitudes);
void add_magnitude_maps(MapTable& table) { HWY_DYNAMIC_DISPATCH(AddMagnitudes)(table); }
}  // namespace tessera::kernels
#endif
