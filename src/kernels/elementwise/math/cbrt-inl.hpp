// Cube roots: x times the square of 1 / cbrt(x), which needs no division, and one correction of the result
// with an exact residual: 0.51 ulp.
#if defined(TESSERA_KERNELS_MATH_CBRT_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_KERNELS_MATH_CBRT_INL_HPP
#undef TESSERA_KERNELS_MATH_CBRT_INL_HPP
#else
#define TESSERA_KERNELS_MATH_CBRT_INL_HPP
#endif

#include <hwy/highway.h>

#include "kernels/elementwise/math/pieces-inl.hpp"

#if HWY_NATIVE_FMA
HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {

// 1 / cbrt(a) within 3.5 %: a third of the bits of a as an integer, subtracted from a constant.
template <class D, class V> HWY_INLINE V InverseCbrtGuess(D d, V a) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    const hn::RebindToSigned<D> di;
    const auto bits = hn::ConvertTo(d, hn::BitCast(di, a));
    const auto guess = hn::NegMulAdd(bits, hn::Set(d, 1.0f / 3), hn::Set(d, 0x54a1f800));
    return hn::BitCast(d, hn::ConvertTo(di, guess));
  } else {
    const hn::RebindToUnsigned<D> du;
    const hn::Repartition<std::uint32_t, D> words;
    const auto upper = hn::BitCast(words, hn::ShiftRight<32>(hn::BitCast(du, a)));
    const auto third = hn::ShiftRight<32>(hn::MulEven(upper, hn::Set(words, 0x55555556u)));
    return hn::BitCast(d, hn::ShiftLeft<32>(hn::Sub(hn::Set(du, 0x553ee800u), third)));
  }
}

// (1 - h)^(-1/3) for |h| <= 0.11: relative error 2^-18.5 (float32) and 2^-22.9.
inline constexpr float inverse_cbrt_f32[] = {0.999997332351307899f, 0.3333267377428852487f,
                                             0.2239804823408824181f, 0.1748358008866186729f};
inline constexpr double inverse_cbrt_f64[] = {1.000000007819830487, 0.333327542548501474,
                                              0.2222119020718390925, 0.1747471133941387755,
                                              0.1461564345161868553};

// 1 - a y^3 without overflow.
template <class D, class V> HWY_INLINE V CubeResidual(D d, V a, V y) {
  return hn::NegMulAdd(hn::Mul(a, y), hn::Mul(y, y), hn::Set(d, 1));
}

template <class D, class V> HWY_INLINE V InverseCbrt(D d, V a) {
  const auto y = InverseCbrtGuess(d, a);
  const auto h = CubeResidual(d, a, y);
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return hn::Mul(y, Polynomial(d, h, inverse_cbrt_f32));
  } else {
    const auto better = hn::Mul(y, Polynomial(d, h, inverse_cbrt_f64));
    const auto rest = CubeResidual(d, a, better);
    const auto series = hn::MulAdd(rest, hn::Set(d, 2.0 / 9), hn::Set(d, 1.0 / 3));
    return hn::MulAdd(hn::Mul(better, rest), series, better);
  }
}

template <class D, class V> HWY_INLINE V CbrtByInverse(D d, V x) {
  using T = hn::TFromD<D>;
  constexpr bool is_float = sizeof(T) == 4;
  // Residuals of smaller numbers would be subnormal.
  const auto a = hn::Abs(x), limit = hn::Set(d, is_float ? T(0x1p-80) : static_cast<T>(0x1p-900));
  const auto up = hn::Set(d, is_float ? T(0x1p72) : static_cast<T>(0x1p240));
  const auto down = hn::Set(d, is_float ? T(0x1p-24) : static_cast<T>(0x1p-80));
  const auto is_small = hn::Lt(a, limit);
  const auto v = hn::IfThenElse(is_small, hn::Mul(a, up), a);
  const auto y = InverseCbrt(d, v), y2 = hn::Mul(y, y), root = hn::Mul(v, y2);
  const auto square = hn::Mul(root, root), lost = hn::MulSub(root, root, square);
  const auto residual = hn::NegMulAdd(lost, root, hn::NegMulAdd(square, root, v));
  const auto value = hn::MulAdd(hn::Mul(residual, hn::Set(d, T(1) / 3)), y2, root);
  const auto scaled = hn::IfThenElse(is_small, hn::Mul(value, down), value);
  return hn::IfThenElse(hn::Lt(a, hn::Inf(d)), hn::CopySign(scaled, x), hn::Add(x, x));
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();
#endif
#endif
