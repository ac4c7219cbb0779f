// The remainders and whole quotients of floats, bit for bit those of the exact fmod. A vector of operands
// whose quotients are below 2^24 or 2^53 takes a division and a multiply-add; others, and targets without
// fused multiply-adds, call fmod for each element.
#if defined(TESSERA_KERNELS_MATH_REMAINDERS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_KERNELS_MATH_REMAINDERS_INL_HPP
#undef TESSERA_KERNELS_MATH_REMAINDERS_INL_HPP
#else
#define TESSERA_KERNELS_MATH_REMAINDERS_INL_HPP
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/elementwise/map_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// of(a, b) for one element; of_rest(d, a, b, fmod(a, b)) for a vector of usual ones.
struct Fmod {
  template <class T> static T of(T a, T b) { return std::fmod(a, b); }
  template <class D, class V> static HWY_INLINE V of_rest(D, V a, V, V rest) { return hn::CopySign(rest, a); }
};
// The remainder has the divisor's sign, and a == floor_divide(a, b) * b + remainder(a, b) up to rounding
// (NumPy, Python).
struct Remainder {
  template <class T> static T of(T a, T b) {
    const T rest = std::fmod(a, b);
    if (rest == 0) return std::copysign(T(0), b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
  }
  template <class D, class V> static HWY_INLINE V of_rest(D d, V, V b, V rest) {
    const auto zero = hn::Zero(d);
    const auto other_sign = hn::Xor(hn::Lt(rest, zero), hn::Lt(b, zero));
    return hn::IfThenElse(hn::Eq(rest, zero), hn::CopySign(zero, b),
                          hn::IfThenElse(other_sign, hn::Add(rest, b), rest));
  }
};
struct FloorDivide {
  template <class T> static T of(T a, T b) {
    if (b == 0) return a / b;
    const T rest = std::fmod(a, b);
    T quotient = (a - rest) / b;
    if (rest != 0 && ((rest < 0) != (b < 0))) quotient -= 1;
    if (quotient == 0) return std::copysign(T(0), a / b);
    const T whole = std::floor(quotient);
    return quotient - whole > T(0.5) ? whole + 1 : whole;
  }
  template <class D, class V> static HWY_INLINE V of_rest(D d, V a, V b, V rest) {
    using T = hn::TFromD<D>;
    const auto zero = hn::Zero(d), one = hn::Set(d, T(1));
    const auto other_sign = hn::Xor(hn::Lt(rest, zero), hn::Lt(b, zero));
    const auto lower = hn::AndNot(hn::Eq(rest, zero), other_sign);
    auto quotient = hn::Div(hn::Sub(a, rest), b);
    quotient = hn::IfThenElse(lower, hn::Sub(quotient, one), quotient);
    const auto whole = hn::Floor(quotient);
    const auto up = hn::Gt(hn::Sub(quotient, whole), hn::Set(d, T(0.5)));
    const auto rounded = hn::IfThenElse(up, hn::Add(whole, one), whole);
    return hn::IfThenElse(hn::Eq(quotient, zero), hn::CopySign(zero, hn::Div(a, b)), rounded);
  }
};

#if HWY_NATIVE_FMA
// The rounded quotient is less than one above the true one in magnitude, so that its whole part is right or
// one too large; a - b times either is a float, which the multiply-add does not round.
template <class F, class T> void remainder_map(const void* const* in, void* out, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  T* r = static_cast<T*>(out);
  const auto endless = hn::Set(d, std::ldexp(T(1), std::numeric_limits<T>::digits)), zero = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x = hn::LoadU(d, a + i), y = hn::LoadU(d, b + i);
    const auto quotient = hn::Trunc(hn::Div(x, y));
    const auto usual = hn::And(hn::Lt(hn::Abs(quotient), endless), hn::Lt(hn::Abs(y), hn::Inf(d)));
    if (HWY_UNLIKELY(!hn::AllTrue(d, usual))) {
      for (std::int64_t lane = i; lane < i + lanes; ++lane) r[lane] = F::of(a[lane], b[lane]);
      continue;
    }
    const auto rest = hn::NegMulAdd(quotient, y, x);
    const auto too_far = hn::Lt(hn::Xor(rest, hn::And(x, hn::SignBit(d))), zero);
    const auto exact = hn::IfThenElse(too_far, hn::Add(rest, hn::CopySign(y, x)), rest);
    hn::StoreU(F::of_rest(d, x, y, exact), d, r + i);
  }
  for (; i < n; ++i) r[i] = F::of(a[i], b[i]);
}
#else
template <class F, class T> void remainder_map(const void* const* in, void* out, std::int64_t n) {
  map2<F, T>(in, out, n);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();
#endif
