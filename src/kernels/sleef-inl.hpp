// Vector functions of SLEEF on Highway vectors: Sin(d, v), Pow(d, a, b) ... Accuracy is 1 ulp (erfc 1.5) over the whole range.
//
// sleef.h declares its vector functions by the compiler's global flags; ours change from target to target, so they are declared here.
#if defined(TESSERA_KERNELS_SLEEF_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_KERNELS_SLEEF_INL_HPP
#undef TESSERA_KERNELS_SLEEF_INL_HPP
#else
#define TESSERA_KERNELS_SLEEF_INL_HPP
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX3
#define TESSERA_SLEEF_VECTORS 1
using SleefFloats = __m512;
using SleefDoubles = __m512d;
#define TESSERA_SLEEF_F32(name, accuracy) Sleef_##name##f16_##accuracy##avx512f
#define TESSERA_SLEEF_F64(name, accuracy) Sleef_##name##d8_##accuracy##avx512f
#elif HWY_TARGET == HWY_AVX2
#define TESSERA_SLEEF_VECTORS 1
using SleefFloats = __m256;
using SleefDoubles = __m256d;
#define TESSERA_SLEEF_F32(name, accuracy) Sleef_##name##f8_##accuracy##avx2
#define TESSERA_SLEEF_F64(name, accuracy) Sleef_##name##d4_##accuracy##avx2
#else
#define TESSERA_SLEEF_VECTORS 0
using SleefFloats = float;
using SleefDoubles = double;
#define TESSERA_SLEEF_F32(name, accuracy) Sleef_##name##f_##accuracy
#define TESSERA_SLEEF_F64(name, accuracy) Sleef_##name##_##accuracy
#endif

template <class T> using SleefValue = std::conditional_t<sizeof(T) == 4, SleefFloats, SleefDoubles>;

// F is an overload set f(float-ish...) / f(double-ish...) as a stateless functor.
template <class F, class D, class V, class... W> HWY_INLINE V CallSleef(D d, V v, W... more) {
#if TESSERA_SLEEF_VECTORS
  (void)d;
  return V{F::of(v.raw, more.raw...)};
#else
  using T = hn::TFromD<D>;
  constexpr std::size_t lanes = hn::MaxLanes(D());
  T in[1 + sizeof...(W)][lanes];
  std::size_t row = 0;
  hn::StoreU(v, d, in[row++]);
  (hn::StoreU(more, d, in[row++]), ...);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
    if constexpr (sizeof...(W) == 0)
      in[0][i] = F::of(in[0][i]);
    else
      in[0][i] = F::of(in[0][i], in[1][i]);
  }
  return hn::LoadU(d, in[0]);
#endif
}

#define TESSERA_SLEEF_1(Name, name, accuracy)                                               \
  extern "C" SleefFloats TESSERA_SLEEF_F32(name, accuracy)(SleefFloats);                    \
  extern "C" SleefDoubles TESSERA_SLEEF_F64(name, accuracy)(SleefDoubles);                  \
  struct Sleef##Name {                                                                      \
    static SleefFloats of(SleefFloats x) { return TESSERA_SLEEF_F32(name, accuracy)(x); }   \
    static SleefDoubles of(SleefDoubles x) { return TESSERA_SLEEF_F64(name, accuracy)(x); } \
  };                                                                                        \
  template <class D, class V> HWY_INLINE V Name(D d, V v) { return CallSleef<Sleef##Name>(d, v); }

#define TESSERA_SLEEF_2(Name, name, accuracy)                                                                  \
  extern "C" SleefFloats TESSERA_SLEEF_F32(name, accuracy)(SleefFloats, SleefFloats);                          \
  extern "C" SleefDoubles TESSERA_SLEEF_F64(name, accuracy)(SleefDoubles, SleefDoubles);                       \
  struct Sleef##Name {                                                                                         \
    static SleefFloats of(SleefFloats x, SleefFloats y) { return TESSERA_SLEEF_F32(name, accuracy)(x, y); }    \
    static SleefDoubles of(SleefDoubles x, SleefDoubles y) { return TESSERA_SLEEF_F64(name, accuracy)(x, y); } \
  };                                                                                                           \
  template <class D, class V> HWY_INLINE V Name(D d, V a, V b) { return CallSleef<Sleef##Name>(d, a, b); }

TESSERA_SLEEF_1(Exp, exp, u10)
TESSERA_SLEEF_1(Exp2, exp2, u10)
TESSERA_SLEEF_1(Expm1, expm1, u10)
TESSERA_SLEEF_1(Log, log, u10)
TESSERA_SLEEF_1(Log2, log2, u10)
TESSERA_SLEEF_1(Log10, log10, u10)
TESSERA_SLEEF_1(Log1p, log1p, u10)
TESSERA_SLEEF_1(Sin, sin, u10)
TESSERA_SLEEF_1(Cos, cos, u10)
TESSERA_SLEEF_1(Tan, tan, u10)
TESSERA_SLEEF_1(Asin, asin, u10)
TESSERA_SLEEF_1(Acos, acos, u10)
TESSERA_SLEEF_1(Atan, atan, u10)
TESSERA_SLEEF_1(Sinh, sinh, u10)
TESSERA_SLEEF_1(Cosh, cosh, u10)
TESSERA_SLEEF_1(Tanh, tanh, u10)
TESSERA_SLEEF_1(Asinh, asinh, u10)
TESSERA_SLEEF_1(Acosh, acosh, u10)
TESSERA_SLEEF_1(Atanh, atanh, u10)
TESSERA_SLEEF_1(Erf, erf, u10)
TESSERA_SLEEF_1(Erfc, erfc, u15)
TESSERA_SLEEF_1(Cbrt, cbrt, u10)
TESSERA_SLEEF_1(Lgamma, lgamma, u10)
TESSERA_SLEEF_2(Pow, pow, u10)
TESSERA_SLEEF_2(Atan2, atan2, u10)
TESSERA_SLEEF_2(Hypot, hypot, u05)

#undef TESSERA_SLEEF_1
#undef TESSERA_SLEEF_2
#undef TESSERA_SLEEF_F32
#undef TESSERA_SLEEF_F64
#undef TESSERA_SLEEF_VECTORS

}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();
#endif
