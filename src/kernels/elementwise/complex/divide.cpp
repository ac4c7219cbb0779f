#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/complex/divide.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/elementwise/complex/divide.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Smith's division: scales by the divisor's larger part, which avoids early overflow and underflow. By 0 each
// part of the dividend is divided by +0.
template <class D, class V> HWY_INLINE void Over(D d, V ar, V ai, V br, V bi, V& real, V& imag) {
  const auto is_upright = hn::Not(hn::Ge(hn::Abs(br), hn::Abs(bi)));  // the larger part is the imaginary one
  const V large = hn::IfThenElse(is_upright, bi, br), small = hn::IfThenElse(is_upright, br, bi);
  const V ratio = hn::Div(small, large), divisor = hn::Add(large, hn::Mul(small, ratio));
  const V scaled_r = hn::Mul(ar, ratio), scaled_i = hn::Mul(ai, ratio);
  const V sum = hn::Add(hn::IfThenElse(is_upright, scaled_r, ar), hn::IfThenElse(is_upright, ai, scaled_i)),
          difference =
              hn::Sub(hn::IfThenElse(is_upright, scaled_i, ai), hn::IfThenElse(is_upright, ar, scaled_r));
  const auto is_zero = hn::And(hn::Eq(br, hn::Zero(d)), hn::Eq(bi, hn::Zero(d)));
  const V by = hn::IfThenElse(is_zero, hn::Zero(d), divisor);
  real = hn::Div(hn::IfThenElse(is_zero, ar, sum), by);
  imag = hn::Div(hn::IfThenElse(is_zero, ai, difference), by);
}

template <bool has_dividend, class T> HWY_INLINE void DivideSome(const T* a, const T* b, T* out) {
  const hn::ScalableTag<T> d;
  auto ar = hn::Set(d, T(1)), ai = hn::Zero(d), br = ar, bi = ai, real = ar, imag = ai;
  if constexpr (has_dividend) hn::LoadInterleaved2(d, a, ar, ai);
  hn::LoadInterleaved2(d, b, br, bi);
  Over(d, ar, ai, br, bi, real, imag);
  hn::StoreInterleaved2(real, imag, d, out);
}

// a may be null if there is no dividend: then it is 1.
template <bool has_dividend, class T> void Divide(const T* a, const T* b, T* out, std::int64_t n) {
  const auto at_once = 2 * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  std::int64_t i = 0;
  for (; i + at_once <= 2 * n; i += at_once)
    DivideSome<has_dividend>(has_dividend ? a + i : nullptr, b + i, out + i);
  if (i == 2 * n) return;
  HWY_ALIGN T last[3][2 * hn::MaxLanes(hn::ScalableTag<T>())] = {};
  if (has_dividend) std::copy(a + i, a + 2 * n, last[0]);
  std::copy(b + i, b + 2 * n, last[1]);
  DivideSome<has_dividend>(last[0], last[1], last[2]);
  std::copy_n(last[2], 2 * n - i, out + i);
}

template <class T> void DivideMap(const void* const* in, void* out, std::int64_t n) {
  Divide<true>(static_cast<const T*>(in[0]), static_cast<const T*>(in[1]), static_cast<T*>(out), n);
}
template <class T> void ReciprocalMap(const void* const* in, void* out, std::int64_t n) {
  Divide<false>(static_cast<const T*>(nullptr), static_cast<const T*>(in[0]), static_cast<T*>(out), n);
}
void AddQuotients(MapTable& table) {
  table.add(map<"divide">, 2, complex64, DivideMap<float>);
  table.add(map<"divide">, 2, complex128, DivideMap<double>);
  table.add(map<"reciprocal">, 1, complex64, ReciprocalMap<float>);
  table.add(map<"reciprocal">, 1, complex128, ReciprocalMap<double>);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(AddQuotients);
void add_quotient_maps(MapTable& table) { HWY_DYNAMIC_DISPATCH(AddQuotients)(table); }
}  // namespace tessera::kernels
#endif
