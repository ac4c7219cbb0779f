// Modified Bessel functions of the first kind, orders 0 and 1, also scaled by exp(-|x|), in float64: up to 8
// as polynomials in (x / 2)^2 of positive terms, beyond as exp(x) / sqrt(x) times a polynomial in 1 / x.
// Relative error at most 2e-15.
#if defined(TESSERA_KERNELS_MATH_BESSEL_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_KERNELS_MATH_BESSEL_INL_HPP
#undef TESSERA_KERNELS_MATH_BESSEL_INL_HPP
#else
#define TESSERA_KERNELS_MATH_BESSEL_INL_HPP
#endif

#include <hwy/highway.h>

#include "kernels/elementwise/math/pieces-inl.hpp"
#include "kernels/elementwise/sleef-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {

// I0(x) and I1(x) / x of t = x^2 / 4, |x| <= 8: interpolated at Chebyshev points in 50 digits, 2^-55.
inline constexpr double series_of_order_0[] = {1.0,
                                               1.0,
                                               0.25,
                                               0.02777777777777778,
                                               0.001736111111111106,
                                               6.94444444444488e-05,
                                               1.9290123456765543e-06,
                                               3.9367598892378866e-08,
                                               6.151187324009745e-10,
                                               7.594058486836424e-12,
                                               7.594057493384469e-14,
                                               6.276092616120491e-16,
                                               4.358286919760222e-18,
                                               2.5796346353114483e-20,
                                               1.3122104575180078e-22,
                                               5.976589569234451e-25,
                                               1.9739699188457068e-27,
                                               1.2294574273495177e-29};
inline constexpr double series_of_order_1[] = {0.5,
                                               0.25,
                                               0.041666666666666664,
                                               0.0034722222222222225,
                                               0.00017361111111111098,
                                               5.787037037037149e-06,
                                               1.3778659611986602e-07,
                                               2.4604749307380764e-09,
                                               3.4173262919411405e-11,
                                               3.7970292292223313e-13,
                                               3.4518444986580124e-15,
                                               2.6150368053585327e-17,
                                               1.676277187800245e-19,
                                               9.212284780051588e-22,
                                               4.376699797646487e-24,
                                               1.8607897187761472e-26,
                                               5.913761060033506e-29,
                                               3.337886108652009e-31};
// sqrt(x) exp(-x) I_order(x) of y = 16 / x - 1, x > 8: 2^-53.
inline constexpr double far_of_order_0[] = {
    0.4021765094450081,      0.0033605519836677235,  0.00013621607439187193, 1.1143033802583682e-05,
    1.4838475863096976e-06,  2.9735956581528157e-07, 8.872154618944625e-08,  3.932926571091252e-08,
    2.155681110989874e-08,   7.532386417555123e-09,  -6.805980075129678e-09, -1.331979859201994e-08,
    -5.162517880939013e-09,  7.323310735122893e-09,  6.789790403895736e-09,  -3.11851456121224e-09,
    -4.8482509221176966e-09, 1.0924527246468664e-09, 2.3981927228949238e-09, -2.748111637276033e-10,
    -7.473844621887592e-10,  3.525321019700796e-11,  1.0881994785468934e-10};
inline constexpr double far_of_order_1[] = {
    0.38939845902587233,     -0.009749577193235609,   -0.000219235763833829,   -1.503854721127423e-05,
    -1.8349101539664522e-06, -3.483853071371078e-07,  -1.0001220638799958e-07, -4.31323156237458e-08,
    -2.3382691353601083e-08, -8.407326839577817e-09,  6.795073490187386e-09,   1.3952625102162603e-08,
    5.722677527454156e-09,   -7.432535335623792e-09,  -7.222524178953976e-09,  3.0717395650769477e-09,
    5.094016301574338e-09,   -1.0476127785270019e-09, -2.5062162405593894e-09, 2.582169443152386e-10,
    7.79067217908059e-10,    -3.2677656089803323e-11, -1.13288885034257e-10};

// c[0] + c[1] x + c[2] x^2 ..., the small terms first.
template <class D, class V, std::size_t N> HWY_INLINE V Horner(D d, V x, const double (&c)[N]) {
  auto sum = hn::Set(d, c[N - 1]);
  for (std::size_t i = N - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
  return sum;
}

// I_order(x), or exp(-|x|) I_order(x).
template <int order, bool scaled, class D, class V> HWY_INLINE V BesselOfDoubles(D d, V x) {
  constexpr double last_of_series = 8, almost_infinite = 1e5, exp_overflows = 700, less = 8,
                   exp_of_less = 2980.957987041728;
  const auto magnitude = hn::Abs(x);
  const auto is_near = hn::Le(magnitude, hn::Set(d, last_of_series));
  auto value = magnitude;
  if (HWY_LIKELY(!hn::AllFalse(d, is_near))) {
    const auto half = hn::Mul(magnitude, hn::Set(d, 0.5)), t = hn::Mul(half, half);
    value =
        order == 0 ? Horner(d, t, series_of_order_0) : hn::Mul(magnitude, Horner(d, t, series_of_order_1));
    if (scaled) value = hn::Mul(value, Exp(d, hn::Neg(magnitude)));
  }
  if (!hn::AllTrue(d, is_near)) {
    // The exponential of infinity over its root would be NaN. Of scaled functions infinity gives 0.
    const auto most = hn::Set(d, scaled ? hwy::HighestValue<double>() : almost_infinite);
    const auto a = hn::IfThenElse(hn::Gt(magnitude, most), most, magnitude);
    const auto inverse = hn::Div(hn::Set(d, 1.0), a);
    const auto centred = hn::MulSub(inverse, hn::Set(d, 2 * last_of_series), hn::Set(d, 1.0));
    auto far = hn::Div(order == 0 ? Horner(d, centred, far_of_order_0) : Horner(d, centred, far_of_order_1),
                       hn::Sqrt(scaled ? magnitude : a));
    if (!scaled) {  // exp(x) overflows before the function does
      const auto is_large = hn::Gt(a, hn::Set(d, exp_overflows));
      const auto exp = Exp(d, hn::Sub(a, hn::IfThenElseZero(is_large, hn::Set(d, less))));
      far = hn::Mul(hn::Mul(far, hn::IfThenElse(is_large, hn::Set(d, exp_of_less), hn::Set(d, 1.0))), exp);
    }
    value = hn::IfThenElse(is_near, value, far);
  }
  return order == 0 ? value : hn::CopySign(value, x);
}

template <int order, bool scaled, class D, class V> HWY_INLINE V Bessel(D d, V x) {
  const auto of = [](auto wide, auto v) HWY_ATTR { return BesselOfDoubles<order, scaled>(wide, v); };
  if constexpr (sizeof(hn::TFromD<D>) == 4)
    return InDoubles(d, of, x);
  else
    return of(d, x);
}
template <class D, class V> HWY_INLINE V BesselI0(D d, V x) { return Bessel<0, false>(d, x); }
template <class D, class V> HWY_INLINE V BesselI1(D d, V x) { return Bessel<1, false>(d, x); }
template <class D, class V> HWY_INLINE V BesselI0e(D d, V x) { return Bessel<0, true>(d, x); }
template <class D, class V> HWY_INLINE V BesselI1e(D d, V x) { return Bessel<1, true>(d, x); }

}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();
#endif
