#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/extreme_place.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/reduce/extreme_place.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <bool max, class V> HWY_INLINE V Better(V a, V b) { return max ? hn::Max(a, b) : hn::Min(a, b); }

// The extreme of n > 0 elements, and whether one is NaN; then the extreme has no meaning.
template <bool max, class T> T ExtremeOf(const T* x, std::int64_t n, bool& has_nan) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  T extreme = x[0];
  std::int64_t i = 0;
  if (n >= 4 * lanes) {
    auto a = hn::LoadU(d, x), b = a, c = a, e = a;
    auto strange = hn::Lt(a, a);  // false in every lane
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      const auto p = hn::LoadU(d, x + i), q = hn::LoadU(d, x + i + lanes),
                 r = hn::LoadU(d, x + i + 2 * lanes), s = hn::LoadU(d, x + i + 3 * lanes);
      if constexpr (hwy::IsFloat<T>()) {
        const auto half = hn::Or(hn::IsNaN(p), hn::IsNaN(q)), rest = hn::Or(hn::IsNaN(r), hn::IsNaN(s));
        strange = hn::Or(strange, hn::Or(half, rest));
      }
      a = Better<max>(a, p), b = Better<max>(b, q), c = Better<max>(c, r), e = Better<max>(e, s);
    }
    has_nan = !hn::AllFalse(d, strange);
    const auto all = Better<max>(Better<max>(a, b), Better<max>(c, e));
    HWY_ALIGN T each[hn::MaxLanes(hn::ScalableTag<T>())];
    hn::Store(all, d, each);
    extreme = max ? *std::max_element(each, each + lanes) : *std::min_element(each, each + lanes);
  }
  for (; i < n; ++i) {
    has_nan |= x[i] != x[i];
    extreme = max ? std::max(extreme, x[i]) : std::min(extreme, x[i]);
  }
  return extreme;
}

// The index of the first of n elements that equals `value`; one of them does.
template <class T> std::int64_t FirstEqual(const T* x, std::int64_t n, T value) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto wanted = hn::Set(d, value);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    if (const auto found = hn::FindFirstTrue(d, hn::Eq(hn::LoadU(d, x + i), wanted)); found >= 0)
      return i + static_cast<std::int64_t>(found);
  return std::find(x + i, x + n, value) - x;
}

template <bool max, class T> std::int64_t Place(const T* x, std::int64_t n) {
  constexpr std::int64_t block = 8192 / sizeof(T);
  T best = x[0];
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < n; i += block) {
    const auto count = std::min(block, n - i);
    bool has_nan = false;
    const T extreme = ExtremeOf<max>(x + i, count, has_nan);
    if (has_nan) return std::find_if(x + i, x + i + count, [](T v) { return v != v; }) - x;
    if (max ? extreme > best : extreme < best) best = extreme, at = i;
  }
  return at + FirstEqual(x + at, std::min(block, n - at), best);
}

// The first NaN of a row that has one.
template <bool max, class T>
void ExtremesOfRows(const void* x, std::int64_t rows, std::int64_t n, void* out) {
  const T* row = static_cast<const T*>(x);
  for (std::int64_t r = 0; r < rows; ++r, row += n) {
    bool has_nan = false;
    const T extreme = ExtremeOf<max>(row, n, has_nan);
    static_cast<T*>(out)[r] = has_nan ? *std::find_if(row, row + n, [](T v) { return v != v; }) : extreme;
  }
}
template <class T> RowReduceFn ExtremeFn(bool max) {
  return max ? ExtremesOfRows<true, T> : ExtremesOfRows<false, T>;
}
RowReduceFn FindExtreme(bool max, Dtype dtype) {
  if (dtype == float32) return ExtremeFn<float>(max);
  if (dtype == float64) return ExtremeFn<double>(max);
  if (dtype == int32) return ExtremeFn<std::int32_t>(max);
  return ExtremeFn<std::int64_t>(max);
}

std::int64_t PlaceOfFloat(bool max, const float* x, std::int64_t n) {
  return max ? Place<true>(x, n) : Place<false>(x, n);
}
std::int64_t PlaceOfDouble(bool max, const double* x, std::int64_t n) {
  return max ? Place<true>(x, n) : Place<false>(x, n);
}
std::int64_t PlaceOfInt32(bool max, const std::int32_t* x, std::int64_t n) {
  return max ? Place<true>(x, n) : Place<false>(x, n);
}
std::int64_t PlaceOfInt64(bool max, const std::int64_t* x, std::int64_t n) {
  return max ? Place<true>(x, n) : Place<false>(x, n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(FindExtreme);
HWY_EXPORT(PlaceOfFloat);
HWY_EXPORT(PlaceOfDouble);
HWY_EXPORT(PlaceOfInt32);
HWY_EXPORT(PlaceOfInt64);

RowReduceFn find_extreme_of_rows(bool max, Dtype dtype) {
  return HWY_DYNAMIC_DISPATCH(FindExtreme)(max, dtype);
}

std::int64_t extreme_place(bool max, const float* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(PlaceOfFloat)(max, x, n);
}
std::int64_t extreme_place(bool max, const double* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(PlaceOfDouble)(max, x, n);
}
std::int64_t extreme_place(bool max, const std::int32_t* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(PlaceOfInt32)(max, x, n);
}
std::int64_t extreme_place(bool max, const std::int64_t* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(PlaceOfInt64)(max, x, n);
}
}  // namespace tessera::kernels
#endif
