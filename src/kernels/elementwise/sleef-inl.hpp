// Vector functions of SLEEF on Highway vectors: Sin(d, v), Pow(d, a, b) ... Accuracy is 1 ulp (erfc 1.5, sinh
// and cosh 2) over the whole range; tests/kernels/math_accuracy_test.cpp measures it. The fast variants
// (FastSin(d, v) ...) have 3.5 ulp and take a half to a third of the time.
//
// sleef.h declares its vector functions depending on the compiler's global flags; ours change from target to
// target, so they are declared here.
#if defined(TESSERA_KERNELS_SLEEF_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_KERNELS_SLEEF_INL_HPP
#undef TESSERA_KERNELS_SLEEF_INL_HPP
#else
#define TESSERA_KERNELS_SLEEF_INL_HPP
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <limits>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// clang passes vectors of more than 16 bytes in memory where the whole file is not compiled for AVX, whatever
// a function's own target is; SLEEF expects them in registers. There vectors are passed in parts of 16 bytes.
#define TESSERA_SLEEF_WHOLE 1
#define TESSERA_SLEEF_PARTS 2
#if defined(__clang__) && (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2)
#define TESSERA_SLEEF_VECTORS TESSERA_SLEEF_PARTS
using SleefFloats = __m128;
using SleefDoubles = __m128d;
#define TESSERA_SLEEF_F32(name, accuracy) Sleef_##name##f4_##accuracy##avx2128
#define TESSERA_SLEEF_F64(name, accuracy) Sleef_##name##d2_##accuracy##avx2128
#elif HWY_TARGET == HWY_AVX3
#define TESSERA_SLEEF_VECTORS TESSERA_SLEEF_WHOLE
using SleefFloats = __m512;
using SleefDoubles = __m512d;
#define TESSERA_SLEEF_F32(name, accuracy) Sleef_##name##f16_##accuracy##avx512f
#define TESSERA_SLEEF_F64(name, accuracy) Sleef_##name##d8_##accuracy##avx512f
#elif HWY_TARGET == HWY_AVX2
#define TESSERA_SLEEF_VECTORS TESSERA_SLEEF_WHOLE
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
// SLEEF's usual sin, cos and tan reduce all arguments of a vector in the way that its largest needs, so that
// an element's last bits depend on its neighbours, and those on the layout. The finz_ variants decide by
// element.
#if TESSERA_SLEEF_VECTORS == 0
#define TESSERA_SLEEF_ALIKE(name) name
#else
#define TESSERA_SLEEF_ALIKE(name) finz_##name
#endif

// F is an overload set f(float-ish...) / f(double-ish...) as a stateless functor.
template <class F, class D, class V, class... W> HWY_INLINE V CallSleef(D d, V v, W... more) {
#if TESSERA_SLEEF_VECTORS == TESSERA_SLEEF_WHOLE
  (void)d;
  return V{F::of(v.raw, more.raw...)};
#elif TESSERA_SLEEF_VECTORS == TESSERA_SLEEF_PARTS
  using T = hn::TFromD<D>;
  const hn::FixedTag<T, 16 / sizeof(T)> part;
  constexpr std::size_t lanes = hn::MaxLanes(D()), step = 16 / sizeof(T);
  HWY_ALIGN T in[1 + sizeof...(W)][lanes];
  std::size_t row = 0;
  hn::Store(v, d, in[row++]);
  (hn::Store(more, d, in[row++]), ...);
  for (std::size_t i = 0; i < lanes; i += step) {
    const auto first = hn::Load(part, in[0] + i);
    if constexpr (sizeof...(W) == 0)
      hn::Store(hn::Vec<decltype(part)>{F::of(first.raw)}, part, in[0] + i);
    else
      hn::Store(hn::Vec<decltype(part)>{F::of(first.raw, hn::Load(part, in[1] + i).raw)}, part, in[0] + i);
  }
  return hn::Load(d, in[0]);
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

#define TESSERA_SLEEF_2(Name, name, accuracy)                                                               \
  extern "C" SleefFloats TESSERA_SLEEF_F32(name, accuracy)(SleefFloats, SleefFloats);                       \
  extern "C" SleefDoubles TESSERA_SLEEF_F64(name, accuracy)(SleefDoubles, SleefDoubles);                    \
  struct Sleef##Name {                                                                                      \
    static SleefFloats of(SleefFloats x, SleefFloats y) { return TESSERA_SLEEF_F32(name, accuracy)(x, y); } \
    static SleefDoubles of(SleefDoubles x, SleefDoubles y) {                                                \
      return TESSERA_SLEEF_F64(name, accuracy)(x, y);                                                       \
    }                                                                                                       \
  };                                                                                                        \
  template <class D, class V> HWY_INLINE V Name(D d, V a, V b) { return CallSleef<Sleef##Name>(d, a, b); }

TESSERA_SLEEF_1(Exp, exp, u10)
TESSERA_SLEEF_1(Exp2, exp2, u10)
TESSERA_SLEEF_1(Expm1, expm1, u10)
TESSERA_SLEEF_1(Log, log, u10)
TESSERA_SLEEF_1(Log2, log2, u10)
TESSERA_SLEEF_1(Log10, log10, u10)
TESSERA_SLEEF_1(Log1pBounded, log1p, u10)
TESSERA_SLEEF_1(Sin, TESSERA_SLEEF_ALIKE(sin), u10)
TESSERA_SLEEF_1(Cos, TESSERA_SLEEF_ALIKE(cos), u10)
TESSERA_SLEEF_1(Tan, TESSERA_SLEEF_ALIKE(tan), u10)
TESSERA_SLEEF_1(Asin, asin, u10)
TESSERA_SLEEF_1(Acos, acos, u10)
TESSERA_SLEEF_1(Atan, atan, u10)
TESSERA_SLEEF_1(SinhBounded, sinh, u10)
TESSERA_SLEEF_1(CoshBounded, cosh, u10)
TESSERA_SLEEF_1(Tanh, tanh, u10)
TESSERA_SLEEF_1(AsinhBounded, asinh, u10)
TESSERA_SLEEF_1(AcoshBounded, acosh, u10)
TESSERA_SLEEF_1(Atanh, atanh, u10)
TESSERA_SLEEF_1(Erf, erf, u10)
TESSERA_SLEEF_1(Erfc, erfc, u15)
TESSERA_SLEEF_1(Cbrt, cbrt, u10)
TESSERA_SLEEF_1(LgammaBounded, lgamma, u10)
TESSERA_SLEEF_1(FastLog, log, u35)
TESSERA_SLEEF_1(FastLog2, log2, u35)
TESSERA_SLEEF_1(FastSin, TESSERA_SLEEF_ALIKE(sin), u35)
TESSERA_SLEEF_1(FastCos, TESSERA_SLEEF_ALIKE(cos), u35)
TESSERA_SLEEF_1(FastTan, TESSERA_SLEEF_ALIKE(tan), u35)
TESSERA_SLEEF_1(FastAsin, asin, u35)
TESSERA_SLEEF_1(FastAcos, acos, u35)
TESSERA_SLEEF_1(FastAtan, atan, u35)
TESSERA_SLEEF_1(FastSinhBounded, sinh, u35)
TESSERA_SLEEF_1(FastCoshBounded, cosh, u35)
TESSERA_SLEEF_1(FastTanh, tanh, u35)
TESSERA_SLEEF_2(FastAtan2, atan2, u35)
TESSERA_SLEEF_2(PowBounded, pow, u10)
TESSERA_SLEEF_2(Atan2, atan2, u10)
TESSERA_SLEEF_2(Hypot, hypot, u05)

// Some functions overflow before their result does. Arguments beyond a limit use another formula, which is
// only computed if there is such an argument.
template <class D, class V, class Far, class Near> HWY_INLINE V BeyondUse(D d, V x, hn::TFromD<D> limit32,
                                                                          hn::TFromD<D> limit64,
                                                                          Far far_value, Near near_value) {
  const auto far = hn::Gt(hn::Abs(x), hn::Set(d, sizeof(hn::TFromD<D>) == 4 ? limit32 : limit64));
  if (HWY_LIKELY(hn::AllFalse(d, far))) return near_value();
  return hn::IfThenElse(far, far_value(), near_value());
}
template <class D, class V> HWY_INLINE V Log1p(D d, V x) {
  using T = hn::TFromD<D>;
  return BeyondUse(
      d, x, T(1e30), static_cast<T>(1e200), [&]() HWY_ATTR { return Log(d, x); },
      [&]() HWY_ATTR { return Log1pBounded(d, x); });
}
// e^|x| / 2 as the product of two halves of the exponent.
template <class D, class V> HWY_INLINE V HalfExp(D d, V x) {
  using T = hn::TFromD<D>;
  const auto root = Exp(d, hn::Mul(hn::Abs(x), hn::Set(d, T(0.5))));
  return hn::Mul(hn::Mul(root, hn::Set(d, T(0.5))), root);
}
template <class D, class V, class Near> HWY_INLINE V SinhNear(D d, V x, Near near_value) {
  return BeyondUse(
      d, x, 80, 700, [&]() HWY_ATTR { return hn::CopySign(HalfExp(d, x), x); }, near_value);
}
template <class D, class V> HWY_INLINE V Sinh(D d, V x) {
  return SinhNear(d, x, [&]() HWY_ATTR { return SinhBounded(d, x); });
}
template <class D, class V> HWY_INLINE V FastSinh(D d, V x) {
  return SinhNear(d, x, [&]() HWY_ATTR { return FastSinhBounded(d, x); });
}
template <class D, class V, class Near> HWY_INLINE V CoshNear(D d, V x, Near near_value) {
  return BeyondUse(
      d, x, 80, 700, [&]() HWY_ATTR { return HalfExp(d, x); }, near_value);
}
template <class D, class V> HWY_INLINE V Cosh(D d, V x) {
  return CoshNear(d, x, [&]() HWY_ATTR { return CoshBounded(d, x); });
}
template <class D, class V> HWY_INLINE V FastCosh(D d, V x) {
  return CoshNear(d, x, [&]() HWY_ATTR { return FastCoshBounded(d, x); });
}
// log(2 |x|): equals asinh and acosh to the last bit once 1 is negligible beside x * x.
template <class D, class V> HWY_INLINE V LogTwice(D d, V x) {
  return hn::Add(Log(d, hn::Abs(x)), hn::Set(d, static_cast<hn::TFromD<D>>(0.69314718055994530942)));
}
template <class D, class V> HWY_INLINE V Asinh(D d, V x) {
  using T = hn::TFromD<D>;
  return BeyondUse(
      d, x, T(1e15), static_cast<T>(1e100), [&]() HWY_ATTR { return hn::CopySign(LogTwice(d, x), x); },
      [&]() HWY_ATTR { return AsinhBounded(d, x); });
}
template <class D, class V> HWY_INLINE V Acosh(D d, V x) {
  using T = hn::TFromD<D>;
  const auto nan = hn::Set(d, std::numeric_limits<T>::quiet_NaN());
  return BeyondUse(
      d, x, T(1e15), static_cast<T>(1e100),
      [&]() HWY_ATTR { return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), nan, LogTwice(d, x)); },
      [&]() HWY_ATTR { return AcoshBounded(d, x); });
}

// Stirling's x (log(x) - 1); numbers below -1e16 are integers, and so poles.
template <class D, class V> HWY_INLINE V Lgamma(D d, V x) {
  using T = hn::TFromD<D>;
  const auto infinity = hn::Set(d, std::numeric_limits<T>::infinity());
  const auto stirling = [&]() HWY_ATTR {
    const auto value = hn::Mul(x, hn::Sub(Log(d, x), hn::Set(d, T(1))));
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), infinity, value);
  };
  return BeyondUse(d, x, T(1e16), T(1e16), stirling, [&]() HWY_ATTR { return LgammaBounded(d, x); });
}
// SLEEF overflows for the last 2e-9 below the largest number; x to the power of 1 at least is exact.
template <class D, class V> HWY_INLINE V Pow(D d, V x, V y) {
  return hn::IfThenElse(hn::Eq(y, hn::Set(d, 1)), x, PowBounded(d, x, y));
}

#undef TESSERA_SLEEF_1
#undef TESSERA_SLEEF_2
#undef TESSERA_SLEEF_F32
#undef TESSERA_SLEEF_F64
#undef TESSERA_SLEEF_ALIKE
#undef TESSERA_SLEEF_VECTORS
#undef TESSERA_SLEEF_WHOLE
#undef TESSERA_SLEEF_PARTS

}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();
#endif
