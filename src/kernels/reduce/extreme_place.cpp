#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/extreme_place.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

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

// `utmost`: the value that no other surpasses; the search ends with the first block that has it. Floats are
// searched for NaN to the end.
template <bool max, class T> std::int64_t Place(const T* x, std::int64_t n, T utmost) {
  constexpr std::int64_t largest_block = 8192 / sizeof(T), first_block = sizeof(T) == 1 ? 256 : largest_block;
  T best = x[0];
  std::int64_t at = 0, size = 1;
  for (std::int64_t i = 0, block = first_block, count = 0; i < n; i += count) {
    count = std::min(block, n - i);
    block = std::min(2 * block, largest_block);
    bool has_nan = false;
    const T extreme = ExtremeOf<max>(x + i, count, has_nan);
    if (has_nan) return std::find_if(x + i, x + i + count, [](T v) { return v != v; }) - x;
    if (max ? extreme > best : extreme < best) best = extreme, at = i, size = count;
    if (!hwy::IsFloat<T>() && best == utmost) break;
  }
  return at + FirstEqual(x + at, size, best);
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

template <class T, T least, T most> std::int64_t PlaceOf(bool max, const void* x, std::int64_t n) {
  const T* const row = static_cast<const T*>(x);
  return max ? Place<true>(row, n, most) : Place<false>(row, n, least);
}
template <class T> std::int64_t PlaceOfInteger(bool max, const void* x, std::int64_t n) {
  return PlaceOf<T, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()>(max, x, n);
}
template <class T> std::int64_t PlaceOfFloat(bool max, const void* x, std::int64_t n) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const T* const row = static_cast<const T*>(x);
  return max ? Place<true>(row, n, infinity) : Place<false>(row, n, -infinity);
}
std::int64_t FindPlace(bool max, Dtype dtype, const void* x, std::int64_t n) {
  switch (dtype.code) {
    case bool_.code: return PlaceOf<std::uint8_t, 0, 1>(max, x, n);
    case int8.code: return PlaceOfInteger<std::int8_t>(max, x, n);
    case int16.code: return PlaceOfInteger<std::int16_t>(max, x, n);
    case int32.code: return PlaceOfInteger<std::int32_t>(max, x, n);
    case int64.code: return PlaceOfInteger<std::int64_t>(max, x, n);
    case uint8.code: return PlaceOfInteger<std::uint8_t>(max, x, n);
    case uint16.code: return PlaceOfInteger<std::uint16_t>(max, x, n);
    case uint32.code: return PlaceOfInteger<std::uint32_t>(max, x, n);
    case float32.code: return PlaceOfFloat<float>(max, x, n);
    default: return PlaceOfFloat<double>(max, x, n);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(FindExtreme);
HWY_EXPORT(FindPlace);

RowReduceFn find_extreme_of_rows(bool max, Dtype dtype) {
  return HWY_DYNAMIC_DISPATCH(FindExtreme)(max, dtype);
}

std::int64_t extreme_place(bool max, Dtype dtype, const void* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(FindPlace)(max, dtype, x, n);
}
}  // namespace tessera::kernels
#endif
