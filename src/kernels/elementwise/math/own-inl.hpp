// Functions that SLEEF has too, but slower: OwnLog1p(d, v) ... Accuracy is 1 ulp. They rely on fused
// multiply-adds; without them SLEEF is called.
#if defined(TESSERA_KERNELS_MATH_OWN_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_KERNELS_MATH_OWN_INL_HPP
#undef TESSERA_KERNELS_MATH_OWN_INL_HPP
#else
#define TESSERA_KERNELS_MATH_OWN_INL_HPP
#endif

#include <hwy/highway.h>

#include "kernels/elementwise/math/cbrt-inl.hpp"
#include "kernels/elementwise/math/doubles-inl.hpp"
#include "kernels/elementwise/math/floats-inl.hpp"
#include "kernels/elementwise/math/powers-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {

#if HWY_NATIVE_FMA
#define TESSERA_OWN_1(name)                                      \
  template <class D, class V> HWY_INLINE V Own##name(D d, V x) { \
    if constexpr (sizeof(hn::TFromD<D>) == 4)                    \
      return name##OfFloats(d, x);                               \
    else                                                         \
      return name##OfDoubles(d, x);                              \
  }
template <class D, class V> HWY_INLINE V Log10OfDoubles(D d, V x) { return Log10(d, x); }
template <class D, class V> HWY_INLINE V CbrtOfFloats(D d, V x) { return CbrtByInverse(d, x); }
template <class D, class V> HWY_INLINE V CbrtOfDoubles(D d, V x) { return CbrtByInverse(d, x); }
#else
#define TESSERA_OWN_1(name) \
  template <class D, class V> HWY_INLINE V Own##name(D d, V x) { return name(d, x); }
#endif
TESSERA_OWN_1(Expm1)
TESSERA_OWN_1(Log1p)
TESSERA_OWN_1(Log10)
TESSERA_OWN_1(Asinh)
TESSERA_OWN_1(Acosh)
TESSERA_OWN_1(Atanh)
TESSERA_OWN_1(Cbrt)
#undef TESSERA_OWN_1

// ---- powers ----

// x^3 rounded once: what the two products lose is added to them.
template <class D, class V> HWY_INLINE V Cube(D d, V x) {
  const auto square = hn::Mul(x, x), cube = hn::Mul(square, x);
  const auto lost = hn::MulAdd(hn::MulSub(x, x, square), x, hn::MulSub(square, x, cube));
  const auto usual = hn::And(hn::Lt(hn::Abs(cube), hn::Inf(d)), hn::Ne(cube, hn::Zero(d)));
  return hn::IfThenElse(usual, hn::Add(cube, lost), cube);
}
// x^(1/2), which is 0 for -0 and infinite for both infinities.
template <class D, class V> HWY_INLINE V RootAsPower(D d, V x) {
  const auto root = hn::Add(hn::Sqrt(x), hn::Zero(d));
  return hn::IfThenElse(hn::Eq(x, hn::Neg(hn::Inf(d))), hn::Inf(d), root);
}
// Calls visit(exponent, power) for the exponents whose powers are a few operations, until one returns true.
template <class D, class Visit> HWY_INLINE bool VisitSimplePowers(D d, Visit visit) {
  using T = hn::TFromD<D>;
  return visit(T(2), [d](auto x) HWY_ATTR { return (void)d, hn::Mul(x, x); }) ||
         visit(T(1), [d](auto x) HWY_ATTR { return (void)d, x; }) ||
         visit(T(-1), [d](auto x) HWY_ATTR { return hn::Div(hn::Set(d, T(1)), x); }) ||
#if HWY_NATIVE_FMA
         visit(T(3), [d](auto x) HWY_ATTR { return Cube(d, x); }) ||
#endif
         visit(T(0.5), [d](auto x) HWY_ATTR { return RootAsPower(d, x); });
}

template <class D, class V> HWY_INLINE V AnyPower(D d, V x, V y) {
#if HWY_NATIVE_FMA
  if constexpr (sizeof(hn::TFromD<D>) == 4) return PowOfFloats(d, x, y);
#endif
#if HWY_TARGET <= HWY_AVX3
  if constexpr (sizeof(hn::TFromD<D>) == 8) return PowOfDoubles(d, x, y);
#endif
  return Pow(d, x, y);
}
// A power does not depend on its neighbours' exponents: a simple one is the same among others.
template <class D, class V> HWY_INLINE V OwnPow(D d, V x, V y) {
  auto value = AnyPower(d, x, y);
  const auto twice = hn::Add(y, y);
  if (HWY_LIKELY(hn::AllFalse(d, hn::Eq(hn::Round(twice), twice)))) return value;
  VisitSimplePowers(d, [&](auto exponent, auto power) HWY_ATTR {
    const auto here = hn::Eq(y, hn::Set(d, exponent));
    value = hn::IfThenElse(here, power(x), value);
    return false;
  });
  return value;
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();
#endif
