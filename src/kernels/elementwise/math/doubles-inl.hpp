// Functions of float64: logarithms of a sum of two numbers (high + low), so that the result has about one
// rounding error, at most 1 ulp, with other arguments left to SLEEF; and exp(x) - 1.
#if defined(TESSERA_KERNELS_MATH_DOUBLES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_KERNELS_MATH_DOUBLES_INL_HPP
#undef TESSERA_KERNELS_MATH_DOUBLES_INL_HPP
#else
#define TESSERA_KERNELS_MATH_DOUBLES_INL_HPP
#endif

#include <hwy/highway.h>

#include "kernels/elementwise/math/pieces-inl.hpp"
#include "kernels/elementwise/sleef-inl.hpp"

#if HWY_NATIVE_FMA
HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {

// (log((1 + s) / (1 - s)) - 2 s) / s^3 as a polynomial in s^2, |s| <= (sqrt(2) - 1) / (sqrt(2) + 1): 2^-56.6.
inline constexpr double log_of_ratio[] = {0.6666666666666669729, 0.3999999999989844732, 0.2857142862639862321,
                                          0.2222221107291635204, 0.181828932141409413,  0.15331597093281991,
                                          0.1461787121005865638};
// Squares of larger numbers overflow, or make 1 negligible.
inline constexpr double far_away = 0x1p500;

// log(high + low), |low| <= the last place of high, high normal and below 2^1020.
template <class D, class V> HWY_INLINE V LogOfSum(D d, V high, V low) {
  const auto one = hn::Set(d, 1.0), half = hn::Set(d, 0.5);
  const auto [m, e] = SplitAtRootOfTwo(d, high);
  const auto low_of_m = hn::Mul(low, PowerOfTwo(d, hn::Neg(e)));
  const auto m1 = hn::Sub(m, one);  // exact
  const auto f = hn::Add(m1, low_of_m), rest = hn::Sub(low_of_m, hn::Sub(f, m1));
  const auto s = hn::Div(f, hn::Add(hn::Set(d, 2.0), f)), s2 = hn::Mul(s, s);
  const auto ratio = hn::Mul(s2, Polynomial(d, s2, log_of_ratio));
  const auto half_square = hn::Mul(hn::Mul(half, f), f);
  // log(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + ratio)); the slope of log carries what f lost.
  const auto lost = hn::MulAdd(e, hn::Set(d, 1.90821492927058770002e-10), hn::NegMulAdd(rest, f, rest));
  const auto beyond = hn::MulAdd(s, hn::Add(half_square, ratio), lost);
  const auto of_e = hn::Mul(e, hn::Set(d, 6.93147180369123816490e-01));  // exact: the factor ends in zeros
  return hn::Sub(of_e, hn::Sub(hn::Sub(half_square, beyond), f));
}

// sqrt(high + low) as a sum of two numbers. The second one has 6 bits after one step, 24 after three.
template <class V> struct TwoParts { V high, low; };
template <int steps, class D, class V> HWY_INLINE TwoParts<V> RootOfSum(D d, V high, V low) {
  const hn::RebindToUnsigned<D> du;
  const auto root = hn::Sqrt(high);
  // 1 / root: three bits from the exponent and fraction as an integer, doubled by each of Newton's steps
  auto inverse = hn::BitCast(d, hn::Sub(hn::Set(du, 0x7fdde5f73d000000u), hn::BitCast(du, root)));
  for (int step = 0; step < steps; ++step)
    inverse = hn::Mul(inverse, hn::NegMulAdd(root, inverse, hn::Set(d, 2.0)));
  const auto residual = hn::Add(hn::NegMulAdd(root, root, high), low);
  return {root, hn::Mul(residual, hn::Mul(inverse, hn::Set(d, 0.5)))};
}

template <class D, class V> HWY_INLINE V Log1pOfDoubles(D d, V x) {
  const auto one = hn::Set(d, 1.0);
  const auto high = hn::Add(x, one), of_one = hn::Sub(high, x);
  const auto low = hn::Add(hn::Sub(one, of_one), hn::Sub(x, hn::Sub(high, of_one)));
  const auto value = LogOfSum(d, high, low);
  const auto usual = hn::And(hn::Gt(x, hn::Neg(one)), hn::Lt(x, hn::Set(d, far_away)));
  const auto is_tiny = hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-54));
  return WhereUsual(d, usual, hn::IfThenElse(is_tiny, x, value), [&]() HWY_ATTR { return Log1p(d, x); });
}

template <class D, class V> HWY_INLINE V AsinhOfDoubles(D d, V x) {
  const auto one = hn::Set(d, 1.0), a = hn::Abs(x);
  const auto square = hn::Mul(a, a), lost = hn::MulSub(a, a, square);
  const auto sum = hn::Add(square, one), of_one = hn::Sub(sum, square);
  const auto lost_too = hn::Add(hn::Sub(one, of_one), hn::Sub(square, hn::Sub(sum, of_one)));
  const auto root = RootOfSum<3>(d, sum, hn::Add(lost_too, lost));
  const auto high = hn::Add(root.high, a), low = hn::Add(hn::Sub(a, hn::Sub(high, root.high)), root.low);
  const auto value = LogOfSum(d, high, low);
  // Near 0 the root is 1 + a^2 / 2, and a needs more digits of it.
  const auto near_zero = hn::MulAdd(hn::Mul(square, a), hn::Set(d, -1.0 / 6), a);
  const auto is_tiny = hn::Lt(a, hn::Set(d, 0x1p-22));
  return WhereUsual(d, hn::Lt(a, hn::Set(d, far_away)),
                    hn::CopySign(hn::IfThenElse(is_tiny, near_zero, value), x),
                    [&]() HWY_ATTR { return Asinh(d, x); });
}

template <class D, class V> HWY_INLINE V AcoshOfDoubles(D d, V x) {
  const auto one = hn::Set(d, 1.0);
  const auto square = hn::Mul(x, x), lost = hn::MulSub(x, x, square);
  const auto difference = hn::Sub(square, one);
  const auto rest = hn::Sub(lost, hn::Add(one, hn::Sub(difference, square)));
  const auto sum = hn::Add(difference, rest);  // near x = 1 `rest` is no small part
  const auto root = RootOfSum<1>(d, sum, hn::Sub(rest, hn::Sub(sum, difference)));
  const auto high = hn::Add(x, root.high), low = hn::Add(hn::Sub(root.high, hn::Sub(high, x)), root.low);
  const auto usual = hn::And(hn::Ge(x, one), hn::Lt(x, hn::Set(d, far_away)));
  return WhereUsual(d, usual, LogOfSum(d, high, low), [&]() HWY_ATTR { return Acosh(d, x); });
}

// log((1 + |x|) / (1 - |x|)) / 2
template <class D, class V> HWY_INLINE V AtanhOfDoubles(D d, V x) {
  const auto one = hn::Set(d, 1.0), a = hn::Abs(x);
  const auto above = hn::Add(one, a), above_low = hn::Sub(a, hn::Sub(above, one));
  const auto below = hn::Sub(one, a), below_low = hn::Sub(hn::Sub(one, below), a);
  const auto inverse = hn::Div(one, below), quotient = hn::Mul(above, inverse);
  const auto rest =
      hn::Add(hn::NegMulAdd(quotient, below, above), hn::NegMulAdd(quotient, below_low, above_low));
  const auto log = LogOfSum(d, quotient, hn::Mul(rest, inverse));
  const auto value = hn::CopySign(hn::Mul(log, hn::Set(d, 0.5)), x);
  const auto is_tiny = hn::Lt(a, hn::Set(d, 0x1p-28));
  return WhereUsual(d, hn::Lt(a, one), hn::IfThenElse(is_tiny, x, value),
                    [&]() HWY_ATTR { return Atanh(d, x); });
}

// (exp(r) - 1 - r - r^2 / 2) / r^3 for |r| <= log(2) / 2, interpolated at Chebyshev's points: its error is
// 2^-57 of r^2 / 2.
inline constexpr double expm1_beyond_square[] = {
    0.1666666666666667,     0.04166666666666667,    0.008333333333326112,   0.001388888888888373,
    0.0001984126987490126,  2.4801587325605324e-05, 2.7557255297969643e-06, 2.755727357010214e-07,
    2.5105259538448494e-08, 2.0914717341716378e-09};

// 2^n (exp(r) - 1) + (2^n - 1), as Expm1OfFloats; r + r^2 / 2 is a sum of two numbers too.
template <class D, class V> HWY_INLINE V Expm1OfDoubles(D d, V x) {
  constexpr double log2_of_e = 1.44269504088896340736, ln2_high = 6.93147180369123816490e-01,
                   ln2_low = 1.90821492927058770002e-10;
  const auto least = hn::Set(d, -40.0), most = hn::Set(d, 710.0);  // beyond: -1 and infinity
  const auto a_half = hn::Set(d, 0.5);
  const auto low = hn::IfThenElse(hn::Lt(x, least), least, x);  // NaN stays
  const auto v = hn::IfThenElse(hn::Gt(low, most), most, low);
  const auto n = hn::Round(hn::Mul(v, hn::Set(d, log2_of_e)));
  const auto r_high = hn::NegMulAdd(n, hn::Set(d, ln2_high), v);  // exact: ln2_high ends in zeros
  const auto of_n = hn::Mul(n, hn::Set(d, -ln2_low));
  const auto r = hn::Add(r_high, of_n), r_low = hn::Add(hn::Sub(r_high, r), of_n);
  const auto square = hn::Mul(r, r), square_low = hn::MulSub(r, r, square);
  const auto t = hn::MulAdd(square, a_half, r), t_rest = hn::MulAdd(square, a_half, hn::Sub(r, t));
  const auto t_low = hn::MulAdd(square_low, a_half, hn::Add(t_rest, hn::MulAdd(r, r_low, r_low)));
  const auto beyond_t = hn::MulAdd(hn::Mul(square, r), Polynomial(d, r, expm1_beyond_square), t_low);
  const auto scale = PowerOfTwo(d, hn::Sub(n, hn::Set(d, 1.0)));
  const auto first = hn::MulAdd(scale, t, scale);
  const auto lost = hn::MulAdd(scale, t, hn::Sub(scale, first));
  const auto sum = hn::Sub(first, a_half), of_first = hn::Add(sum, a_half);
  const auto lost_too = hn::Sub(hn::Sub(first, of_first), hn::Add(a_half, hn::Sub(sum, of_first)));
  const auto half_result = hn::Add(sum, hn::MulAdd(scale, beyond_t, hn::Add(lost, lost_too)));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-54)), x, hn::Add(half_result, half_result));
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();
#endif
#endif
