// Powers of float64: exp(y log x) with the logarithm as a sum of two numbers, of relative error 2^-65, so
// that the result has about 0.7 ulp. Tables of 32 and 16 numbers stand in registers (AVX-512).
#if defined(TESSERA_KERNELS_MATH_POWERS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_KERNELS_MATH_POWERS_INL_HPP
#undef TESSERA_KERNELS_MATH_POWERS_INL_HPP
#else
#define TESSERA_KERNELS_MATH_POWERS_INL_HPP
#endif

#include <hwy/highway.h>

#include "kernels/elementwise/math/doubles-inl.hpp"
#include "kernels/elementwise/math/floats-inl.hpp"

#if HWY_TARGET <= HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {

// Mantissas from 95/128 to 95/64 in 32 intervals, equal in bits; the one around 1 ends at 1 + 1/64. Multiples
// of 1/64 near the inverses of their centres, so that m / centre - 1 is exact; and minus their logarithms,
// to 2^-42 and the rest.
alignas(64) inline constexpr double inverse_of_node[] = {
    1.328125, 1.3125,  1.28125,  1.25,     1.234375, 1.203125, 1.1875,   1.15625,
    1.140625, 1.125,   1.109375, 1.078125, 1.0625,   1.046875, 1.03125,  1.015625,
    1.0,      0.96875, 0.9375,   0.921875, 0.890625, 0.859375, 0.84375,  0.828125,
    0.796875, 0.78125, 0.765625, 0.75,     0.734375, 0.71875,  0.703125, 0.6875};
alignas(64) inline constexpr double log_of_node[] = {-0.28376817313073843,
                                                     -0.2719337154835557,
                                                     -0.2478361639045943,
                                                     -0.22314355131425145,
                                                     -0.21056476910735,
                                                     -0.18492233849406148,
                                                     -0.17185025692674571,
                                                     -0.14518200984457508,
                                                     -0.13157635778861732,
                                                     -0.11778303565643,
                                                     -0.10379679368156758,
                                                     -0.07522342123752424,
                                                     -0.06062462181648698,
                                                     -0.0458095360313564,
                                                     -0.03077165866670839,
                                                     -0.015504186535963527,
                                                     0.0,
                                                     0.03174869831468641,
                                                     0.0645385211375924,
                                                     0.08134563945395712,
                                                     0.11583181552509814,
                                                     0.151549898127314,
                                                     0.16989903679541385,
                                                     0.18859116980752333,
                                                     0.22705745063535687,
                                                     0.2468600779316148,
                                                     0.2670627852489815,
                                                     0.28768207245184385,
                                                     0.30873548164959175,
                                                     0.33024168687052224,
                                                     0.35222059358943625,
                                                     0.3746934494413381};
alignas(64) inline constexpr double log_of_node_rest[] = {9.3834172236637e-14,
                                                          -8.604306772808733e-14,
                                                          1.3029797173308663e-14,
                                                          4.169796584527195e-14,
                                                          3.6507188831790577e-16,
                                                          4.9485167661250996e-14,
                                                          8.649239607212071e-14,
                                                          7.718001336828099e-14,
                                                          -1.0195735223708473e-13,
                                                          4.654729747598445e-14,
                                                          -7.598636597194141e-14,
                                                          -6.329065958724544e-14,
                                                          5.213620639136504e-14,
                                                          6.219834199475792e-14,
                                                          -4.529814257790929e-14,
                                                          -1.7274567499706107e-15,
                                                          0.0,
                                                          -1.0610652735224087e-13,
                                                          -2.1225608044809997e-14,
                                                          -4.713370778300984e-15,
                                                          2.3568822182038756e-14,
                                                          -1.1307104809870373e-13,
                                                          -1.6376276414097503e-14,
                                                          2.6693431578015818e-14,
                                                          -1.078736749871691e-14,
                                                          -8.899851356560444e-14,
                                                          6.371947269815667e-14,
                                                          -6.292357389008195e-14,
                                                          2.1522127491642888e-14,
                                                          5.4612144489920215e-14,
                                                          -8.414918193489195e-14,
                                                          7.260466149925637e-14};
// 2^(i / 16), and what it lacks, relative.
alignas(64) inline constexpr double sixteenth_power_of_two[] = {1.0,
                                                                1.0442737824274138,
                                                                1.0905077326652577,
                                                                1.1387886347566916,
                                                                1.189207115002721,
                                                                1.241857812073484,
                                                                1.2968395546510096,
                                                                1.3542555469368927,
                                                                1.4142135623730951,
                                                                1.4768261459394993,
                                                                1.5422108254079407,
                                                                1.6104903319492543,
                                                                1.681792830507429,
                                                                1.7562521603732995,
                                                                1.8340080864093424,
                                                                1.9152065613971474};
alignas(64) inline constexpr double sixteenth_power_rest[] = {0.0,
                                                              8.189317638195515e-17,
                                                              -2.7939114859515733e-17,
                                                              7.826573258636076e-17,
                                                              3.3484623336251524e-17,
                                                              3.750854201303127e-17,
                                                              1.9572585293112036e-17,
                                                              5.68648095791174e-17,
                                                              -6.835808657661922e-17,
                                                              -2.3591094770850053e-17,
                                                              5.1548301170786783e-17,
                                                              1.5341410053603723e-17,
                                                              4.875160526227062e-17,
                                                              1.685487290628973e-17,
                                                              1.790126907604513e-17,
                                                              -5.545065618639427e-17};
// (log(1 + r) - r + r^2 / 2) / (-r^3 / 2) for |r| <= 0.0274: 2^-67 relative to the logarithm.
inline constexpr double log_beyond_square[] = {
    -0.6666666666666666, 0.4999999999999981,   -0.3999999999999983, 0.33333333336643894, -0.2857142857448452,
    0.24999984127471236, -0.22222207570450525, 0.20028180698108194, -0.18207831413050218};
// (exp(r) - 1 - r) / r^2 for |r| <= log(2) / 32: 2^-64.
inline constexpr double exp_beyond_linear[] = {0.5000000000000001,    0.16666666666666669,
                                               0.04166666666358317,   0.008333333332990724,
                                               0.0013889063789935463, 0.00019841464175558392};

// log(a) = high + low of a normal a > 0.
template <class D, class V> HWY_INLINE TwoParts<V> LogInTwo(D d, V a) {
  const hn::RebindToSigned<D> di;
  constexpr std::int64_t least_mantissa = 0x3fe7c00000000000;  // 95/128
  const auto from_least = hn::Sub(hn::BitCast(di, a), hn::Set(di, least_mantissa));
  const auto interval = hn::ShiftRight<47>(from_least);
  const auto is_upper = hn::RebindMask(d, hn::TestBit(interval, hn::Set(di, std::int64_t{16})));
  const auto of_interval = [&](const double* table) HWY_ATTR {
    return hn::IfThenElse(is_upper, FromTable(d, interval, table + 16), FromTable(d, interval, table));
  };
  const auto exponent = hn::And(from_least, hn::Set(di, std::int64_t{-1} << 52));
  const auto m = hn::BitCast(d, hn::Sub(hn::BitCast(di, a), exponent));
  const auto e = hn::ConvertTo(d, hn::ShiftRight<52>(from_least));
  const auto r = hn::MulSub(m, of_interval(inverse_of_node), hn::Set(d, 1.0));
  // e log(2) and the logarithm of the node end at 2^-42: their sum is exact.
  const auto base = hn::MulAdd(e, hn::Set(d, 0.6931471805598903), of_interval(log_of_node));
  const auto base_low = hn::MulAdd(e, hn::Set(d, 5.497923018708371e-14), of_interval(log_of_node_rest));
  const auto linear = hn::Add(base, r), linear_low = hn::Add(hn::Sub(base, linear), r);
  const auto minus_half_r = hn::Mul(r, hn::Set(d, -0.5)), square = hn::Mul(r, minus_half_r);
  const auto square_low = hn::MulSub(r, minus_half_r, square);
  const auto sum = hn::Add(linear, square), sum_low = hn::Add(hn::Sub(linear, sum), square);
  const auto beyond = hn::Mul(hn::Mul(r, square), Polynomial(d, r, log_beyond_square));
  const auto low = hn::Add(hn::Add(hn::Add(base_low, linear_low), hn::Add(square_low, sum_low)), beyond);
  const auto high = hn::Add(sum, low);
  return {high, hn::Add(hn::Sub(sum, high), low)};
}

// exp(high + low), |low| <= 2^-50; 0 and infinity beyond the exponents.
template <class D, class V> HWY_INLINE V ExpOfSum(D d, V high, V low) {
  const hn::RebindToSigned<D> di;
  const auto most = hn::Set(d, 800.0);
  const auto z = hn::Min(hn::Max(high, hn::Neg(most)), most);
  const auto shifted = hn::MulAdd(z, hn::Set(d, 23.083120654223414), hn::Set(d, 0x1.8p52));  // ends at 1
  const auto sixteenths = hn::Sub(shifted, hn::Set(d, 0x1.8p52));
  const auto rest = hn::NegMulAdd(sixteenths, hn::Set(d, 0.043321698785007356), z);
  const auto r = hn::Add(hn::MulAdd(sixteenths, hn::Set(d, 1.0774652828509272e-14), rest), low);
  const auto i = hn::BitCast(di, shifted);
  const auto power = FromTable(d, i, sixteenth_power_of_two);
  const auto beyond =
      hn::MulAdd(hn::Mul(r, r), Polynomial(d, r, exp_beyond_linear), FromTable(d, i, sixteenth_power_rest));
  const auto value = hn::MulAdd(power, hn::Add(r, beyond), power);
  return V{_mm512_scalef_pd(value.raw, hn::Mul(sixteenths, hn::Set(d, 0.0625)).raw)};  // by 2^floor
}

template <class D, class V> HWY_INLINE V PowOfDoubles(D d, V x, V y) {
  const auto a = hn::Abs(x);
  const auto log = LogInTwo(d, a);
  const auto high = hn::Mul(y, log.high);
  const auto low = hn::MulAdd(y, log.low, hn::MulSub(y, log.high, high));
  const auto has_low = hn::Lt(hn::Abs(high), hn::Set(d, 800.0));  // beyond, it is no small part
  auto value = ExpOfSum(d, high, hn::IfThenElseZero(has_low, low));
  const auto usual = hn::And(hn::And(hn::Ge(a, hn::Set(d, 0x1p-1022)), hn::Lt(a, hn::Inf(d))),
                             hn::Lt(hn::Abs(y), hn::Inf(d)));
  const auto is_negative = hn::Lt(x, hn::Zero(d));
  if (HWY_UNLIKELY(!hn::AllFalse(d, is_negative))) {
    const auto half = hn::Mul(y, hn::Set(d, 0.5));
    const auto is_whole = hn::Eq(hn::Round(y), y);
    const auto is_odd = hn::AndNot(hn::Eq(hn::Round(half), half), is_whole);
    value = hn::IfThenElse(hn::And(is_negative, is_odd), hn::Neg(value), value);
    value = hn::IfThenElse(hn::AndNot(is_whole, is_negative), hn::NaN(d), value);
  }
  return WhereUsual(d, usual, value, [&]() HWY_ATTR { return Pow(d, x, y); });
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();
#endif
#endif
