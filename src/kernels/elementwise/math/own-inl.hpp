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
template <class D, class V> HWY_INLINE V Expm1OfDoubles(D d, V x) { return Expm1(d, x); }
template <class D, class V> HWY_INLINE V CbrtOfFloats(D d, V x) { return CbrtByInverse(d, x); }
template <class D, class V> HWY_INLINE V CbrtOfDoubles(D d, V x) { return CbrtByInverse(d, x); }
#else
#define TESSERA_OWN_1(name) \
  template <class D, class V> HWY_INLINE V Own##name(D d, V x) { return name(d, x); }
#endif
TESSERA_OWN_1(Expm1)
TESSERA_OWN_1(Log1p)
TESSERA_OWN_1(Asinh)
TESSERA_OWN_1(Acosh)
TESSERA_OWN_1(Atanh)
TESSERA_OWN_1(Cbrt)
#undef TESSERA_OWN_1

template <class D, class V> HWY_INLINE V OwnPow(D d, V x, V y) {
#if HWY_NATIVE_FMA
  if constexpr (sizeof(hn::TFromD<D>) == 4) return PowOfFloats(d, x, y);
#endif
  return Pow(d, x, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();
#endif
