// Functions of float32 computed in float64, which needs no sums of two numbers to be correct to the last bit.
// Arguments outside of the formulas (infinite, NaN, out of the domain) are left to SLEEF.
#if defined(TESSERA_KERNELS_MATH_FLOATS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_KERNELS_MATH_FLOATS_INL_HPP
#undef TESSERA_KERNELS_MATH_FLOATS_INL_HPP
#else
#define TESSERA_KERNELS_MATH_FLOATS_INL_HPP
#endif

#include <hwy/highway.h>

#include "kernels/elementwise/math/pieces-inl.hpp"
#include "kernels/elementwise/sleef-inl.hpp"

#if HWY_NATIVE_FMA
HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {

// log2(1 + f) / f for f in [sqrt(1/2) - 1, sqrt(2) - 1]: relative error 2^-41, because a power multiplies it
// by the exponent.
inline constexpr double log2_over_f[] = {
    1.442695040889354459,  -0.7213475204249735378, 0.4808983465855214382, -0.3606737658989982537,
    0.2885390706775621481, -0.2404487273290909621, 0.2060952666626999907, -0.1803504027816363093,
    0.1604252306438155432, -0.1441261903134291495, 0.1291441400948606599, -0.1196255932918293729,
    0.1261233766541007994, -0.1235205204102587273, 0.06318182333666178112};
// 2^t for t in [-1/2, 1/2]: relative error 2^-34.
inline constexpr double exp2_of_rest[] = {
    0.9999999999616783741,   0.693147180728404476,    0.2402265119818726971,    0.0555041035356026143,
    0.009618027250361059344, 0.001333392248558382343, 0.0001546929203880263814, 0.00001520193771241771733};
// (exp(r) - 1 - r) / r^2 for |r| <= log(2) / 2: 2^-32 relative to r.
inline constexpr float expm1_of_rest[] = {0.5000000046153233832f,   0.1666666681669322545f,
                                          0.04166635543194131116f,  0.008333273118934198798f,
                                          0.001394095886031210319f, 0.0001991413848470779811f};

// ---- logarithms by a table, where a register holds eight of its numbers ----

#if HWY_TARGET <= HWY_AVX3
// The mantissas from 3/4 to 3/2 in 16 intervals, by the first four bits of their fractions: numbers near the
// inverses of their centres, 1 where an interval ends at 1; and minus the logarithms of these numbers.
alignas(64) inline constexpr double inverse_of_centre[] = {1.0,
                                                           0.914306640625,
                                                           0.86474609375,
                                                           0.820556640625,
                                                           0.780517578125,
                                                           0.744140625,
                                                           0.711181640625,
                                                           0.680908203125,
                                                           1.30615234375,
                                                           1.2548828125,
                                                           1.20751953125,
                                                           1.16357421875,
                                                           1.122802734375,
                                                           1.084716796875,
                                                           1.049072265625,
                                                           1.0};
alignas(64) inline constexpr double log_of_centre[] = {0.0,
                                                       0.08958927076802387,
                                                       0.14531934837656488,
                                                       0.19777233899423804,
                                                       0.24779801765950227,
                                                       0.2955252499128068,
                                                       0.3408274097599091,
                                                       0.3843277790918548,
                                                       -0.2670856731707085,
                                                       -0.2270421917298671,
                                                       -0.1885682813620178,
                                                       -0.15149649093934373,
                                                       -0.1158280008205801,
                                                       -0.08131893621656476,
                                                       -0.047906217055651394,
                                                       0.0};
// log(1 + z) / z for z in [-1/32, 1/16]: relative error 2^-34.
inline constexpr double log1p_over_z[] = {0.9999999999819319,   -0.499999994640441, 0.3333334785706735,
                                          -0.25001724825061045, 0.1999764052974298, -0.15437920688380108};

// Element i of a table of 16 numbers; bits of i above the fourth are ignored.
template <class D, class I> HWY_INLINE hn::Vec<D> FromTable(D d, I i, const double* table) {
  static_assert(hn::MaxLanes(D()) == 8);
  return hn::Vec<D>{_mm512_permutex2var_pd(hn::Load(d, table).raw, i.raw, hn::Load(d, table + 8).raw)};
}

// log(v) of a normal v > 0 to float32 precision; v - 1 must be that precise if v is near 1.
template <class D, class V> HWY_INLINE V LogToFloat(D d, V v) {
  const hn::RebindToUnsigned<D> du;
  const V m{_mm512_getmant_pd(v.raw, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_zero)};
  const V e{_mm512_sub_pd(_mm512_getexp_pd(v.raw), _mm512_getexp_pd(m.raw))};
  const auto interval = hn::ShiftRight<48>(hn::BitCast(du, m));  // the fraction's first four bits
  const auto z = hn::MulSub(m, FromTable(d, interval, inverse_of_centre), hn::Set(d, 1.0));
  const auto base = hn::MulAdd(e, hn::Set(d, 0.69314718055994530942), FromTable(d, interval, log_of_centre));
  return hn::MulAdd(z, Polynomial(d, z, log1p_over_z), base);
}
#else
// log(1 + f) / f for f in [sqrt(1/2) - 1, sqrt(2) - 1]: minimax, relative error 2^-33.
inline constexpr double log1p_over_f[] = {
    1.000000000034919595,  -0.500000003305278739,  0.3333333151506611009, -0.2499993348180270612,
    0.2000011335022177366, -0.1667047898998759935, 0.1428550405534080333, -0.1241058932190699809,
    0.1102114166837586923, -0.1088117819837734214, 0.1073391818078149182, -0.05985067895677189337};
// log(v) of a normal v > 0 to float32 precision; v - 1 must be that precise if v is near 1.
template <class D, class V> HWY_INLINE V LogToFloat(D d, V v) {
  const auto [m, e] = SplitAtRootOfTwo(d, v);
  const auto f = hn::Sub(m, hn::Set(d, 1.0));
  return hn::MulAdd(e, hn::Set(d, 0.69314718055994530942), hn::Mul(f, Polynomial(d, f, log1p_over_f)));
}
#endif

#if HWY_TARGET <= HWY_AVX3
// Mantissas from 95/128 to 95/64 in 32 intervals, equal in bits; the one around 1 ends at 1 + 1/64. Multiples
// of 1/64 near the inverses of their centres, so that m / centre - 1 is exact; and minus their logarithms to
// base 10, to 2^-14 and the rest.
alignas(64) inline constexpr float inverse_of_centre_32[] = {
    1.328125f, 1.3125f,  1.28125f,  1.25f,     1.234375f, 1.203125f, 1.1875f,   1.15625f,
    1.140625f, 1.125f,   1.109375f, 1.078125f, 1.0625f,   1.046875f, 1.03125f,  1.015625f,
    1.0f,      0.96875f, 0.9375f,   0.921875f, 0.890625f, 0.859375f, 0.84375f,  0.828125f,
    0.796875f, 0.78125f, 0.765625f, 0.75f,     0.734375f, 0.71875f,  0.703125f, 0.6875f};
alignas(64) inline constexpr float log10_of_centre[] = {
    -0.12322998f,   -0.118103027f,  -0.10760498f,   -0.0969238281f,  -0.0914306641f, -0.0803222656f,
    -0.0746459961f, -0.0630493164f, -0.0571289062f, -0.0511474609f,  -0.0451049805f, -0.0326538086f,
    -0.0263061523f, -0.0198974609f, -0.0133666992f, -0.00671386719f, 0.0f,           0.0137939453f,
    0.0280151367f,  0.0353393555f,  0.0502929688f,  0.0657958984f,   0.0737915039f,  0.0819091797f,
    0.0986328125f,  0.10723877f,    0.115966797f,   0.124938965f,    0.134094238f,   0.143432617f,
    0.152954102f,   0.162719727f};
alignas(64) inline constexpr float log10_of_centre_rest[] = {-8.9712621e-06f,
                                                             3.71526585e-06f,
                                                             -2.88979318e-05f,
                                                             1.38151172e-05f,
                                                             -1.64532448e-05f,
                                                             1.15144367e-05f,
                                                             1.23777972e-05f,
                                                             -2.42934084e-06f,
                                                             -1.39798867e-05f,
                                                             -5.06150991e-06f,
                                                             2.66057341e-05f,
                                                             -1.53081601e-05f,
                                                             -2.27863784e-05f,
                                                             2.63222046e-06f,
                                                             2.73766068e-06f,
                                                             -1.95154716e-05f,
                                                             0.0f,
                                                             -5.6608269e-06f,
                                                             1.35868813e-05f,
                                                             -1.13931274e-05f,
                                                             1.21495614e-05f,
                                                             2.1386053e-05f,
                                                             -5.28974533e-06f,
                                                             -5.07530422e-06f,
                                                             -2.30146143e-05f,
                                                             -2.87998828e-05f,
                                                             1.70970798e-05f,
                                                             -2.2823545e-07f,
                                                             -1.21222329e-05f,
                                                             -1.04748851e-05f,
                                                             1.33586464e-05f,
                                                             7.5709354e-06f};
// (log10(1 + r) - r / log(10)) / r^2 for |r| <= 0.0229: 2^-32 relative to the logarithm.
inline constexpr float log10_beyond_linear[] = {-0.21714723110198975f, 0.14476482570171356f,
                                                -0.1086115911602974f, 0.08689144253730774f};

// The logarithm of the exponent and centre is exact to 2^-14, and what is added to it has a second part.
template <class D, class V> HWY_INLINE V Log10OfFloats(D d, V x) {
  static_assert(hn::MaxLanes(D()) == 16);
  const hn::RebindToSigned<D> di;
  const auto from_least = hn::Sub(hn::BitCast(di, x), hn::Set(di, 0x3f3e0000));
  const auto interval = hn::ShiftRight<18>(from_least);
  const auto of_interval = [&](const float* table) HWY_ATTR {
    return V{_mm512_permutex2var_ps(hn::Load(d, table).raw, interval.raw, hn::Load(d, table + 16).raw)};
  };
  const auto exponent = hn::And(from_least, hn::Set(di, static_cast<std::int32_t>(0xff800000)));
  const auto m = hn::BitCast(d, hn::Sub(hn::BitCast(di, x), exponent));
  const auto e = hn::ConvertTo(d, hn::ShiftRight<23>(from_least));
  const auto r = hn::MulSub(m, of_interval(inverse_of_centre_32), hn::Set(d, 1.0f));
  const auto base = hn::MulAdd(e, hn::Set(d, 0.301025390625f), of_interval(log10_of_centre));
  const auto base_low = hn::MulAdd(e, hn::Set(d, 4.605039066518657e-06f), of_interval(log10_of_centre_rest));
  const auto slope = hn::Set(d, 0.4342944920063019f), slope_low = hn::Set(d, -1.0103049952192578e-08f);
  const auto linear = hn::Mul(r, slope);
  const auto linear_low = hn::MulAdd(r, slope_low, hn::MulSub(r, slope, linear));
  const auto sum = hn::Add(base, linear), sum_low = hn::Add(hn::Sub(base, sum), linear);
  const auto beyond = hn::MulAdd(hn::Mul(r, r), Polynomial(d, r, log10_beyond_linear), linear_low);
  const auto value = hn::Add(sum, hn::Add(hn::Add(base_low, sum_low), beyond));
  const auto usual = hn::And(hn::Ge(x, hn::Set(d, 0x1p-126f)), hn::Lt(x, hn::Inf(d)));
  return WhereUsual(d, usual, value, [&]() HWY_ATTR { return Log10(d, x); });
}
#else
template <class D, class V> HWY_INLINE V Log10OfFloats(D d, V x) { return Log10(d, x); }
#endif

// |x| below this equals the function of x to the last bit.
template <class D, class V> HWY_INLINE V OrTiny(D d, V x, float limit, V value) {
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, limit)), x, value);
}

template <class D, class V> HWY_INLINE V Log1pOfFloats(D d, V x) {
  const auto value = InDoubles(
      d, [](auto wide, auto v) HWY_ATTR { return LogToFloat(wide, hn::Add(v, hn::Set(wide, 1.0))); }, x);
  const auto usual = hn::And(hn::Gt(x, hn::Set(d, -1.0f)), hn::Lt(x, hn::Inf(d)));
  return WhereUsual(d, usual, OrTiny(d, x, 0x1p-25f, value), [&]() HWY_ATTR { return Log1p(d, x); });
}

template <class D, class V> HWY_INLINE V AsinhOfFloats(D d, V x) {
  const auto a = hn::Abs(x);
  const auto value = InDoubles(
      d,
      [](auto wide, auto v) HWY_ATTR {
        const auto root = hn::Sqrt(hn::MulAdd(v, v, hn::Set(wide, 1.0)));
        return LogToFloat(wide, hn::Add(v, root));
      },
      a);
  const auto is_finite = hn::Lt(a, hn::Inf(d));
  return hn::IfThenElse(is_finite, OrTiny(d, x, 0x1p-20f, hn::CopySign(value, x)), hn::Add(x, x));
}

template <class D, class V> HWY_INLINE V AcoshOfFloats(D d, V x) {
  const auto value = InDoubles(
      d,
      [](auto wide, auto v) HWY_ATTR {
        const auto root = hn::Sqrt(hn::MulSub(v, v, hn::Set(wide, 1.0)));
        return LogToFloat(wide, hn::Add(v, root));
      },
      x);
  const auto usual = hn::And(hn::Ge(x, hn::Set(d, 1.0f)), hn::Lt(x, hn::Inf(d)));
  return WhereUsual(d, usual, value, [&]() HWY_ATTR { return Acosh(d, x); });
}

template <class D, class V> HWY_INLINE V AtanhOfFloats(D d, V x) {
  const auto a = hn::Abs(x);
  const auto value = InDoubles(
      d,
      [](auto wide, auto v) HWY_ATTR {
        const auto one = hn::Set(wide, 1.0);
        const auto log = LogToFloat(wide, hn::Div(hn::Add(one, v), hn::Sub(one, v)));
        return hn::Mul(log, hn::Set(wide, 0.5));
      },
      a);
  const auto usual = hn::Lt(a, hn::Set(d, 1.0f));
  return WhereUsual(d, usual, OrTiny(d, x, 0x1p-20f, hn::CopySign(value, x)),
                    [&]() HWY_ATTR { return Atanh(d, x); });
}

// 2^n (exp(r) - 1) + (2^n - 1) as a sum of two numbers; halved until the end, because 2^128 overflows.
template <class D, class V> HWY_INLINE V Expm1OfFloats(D d, V x) {
  constexpr float log2_of_e = 1.44269504088896341f, ln2_high = 0.693145752f, ln2_low = 1.42860677e-06f;
  const auto least = hn::Set(d, -30.0f), most = hn::Set(d, 89.0f);  // beyond: -1 and infinity
  const auto low = hn::IfThenElse(hn::Lt(x, least), least, x);      // NaN stays
  const auto v = hn::IfThenElse(hn::Gt(low, most), most, low);
  const auto n = hn::Round(hn::Mul(v, hn::Set(d, log2_of_e)));
  const auto r = hn::NegMulAdd(n, hn::Set(d, ln2_high), v);  // exact
  const auto r_low = hn::Mul(n, hn::Set(d, -ln2_low));
  const auto rest = hn::Add(r, r_low);
  const auto beyond_r = hn::MulAdd(hn::Mul(rest, rest), Polynomial(d, rest, expm1_of_rest), r_low);
  const auto scale = PowerOfTwo(d, hn::Sub(n, hn::Set(d, 1.0f)));
  const auto first = hn::MulAdd(scale, r, scale);
  const auto lost = hn::MulAdd(scale, r, hn::Sub(scale, first));
  const auto minus_half = hn::Set(d, -0.5f);
  const auto sum = hn::Add(first, minus_half), of_first = hn::Sub(sum, minus_half);
  const auto lost_too = hn::Add(hn::Sub(first, of_first), hn::Sub(minus_half, hn::Sub(sum, of_first)));
  const auto small = hn::MulAdd(scale, beyond_r, hn::Add(lost, lost_too));
  const auto half = hn::Add(sum, small);
  return OrTiny(d, x, 0x1p-25f, hn::Add(half, half));
}

// The magnitude |x|^y = 2^(y log2 |x|) for finite y; |x| may be 0 or infinite.
template <class D, class V> HWY_INLINE V MagnitudeOfPower(D d, V a, V y) {
  const auto [m, e] = SplitAtRootOfTwo(d, a);
  const auto f = hn::Sub(m, hn::Set(d, 1.0));
  auto log2 = hn::MulAdd(f, Polynomial(d, f, log2_over_f), e);
  const auto endless = hn::Set(d, 0x1p200);  // times the smallest y overflows too
  log2 = hn::IfThenElse(hn::Eq(a, hn::Zero(d)), hn::Neg(endless), log2);
  log2 = hn::IfThenElse(hn::Eq(a, hn::Inf(d)), endless, log2);
  const auto t = hn::Min(hn::Max(hn::Mul(y, log2), hn::Set(d, -200.0)), hn::Set(d, 200.0));
  const auto n = hn::Round(t);
  return hn::Mul(Polynomial(d, hn::Sub(t, n), exp2_of_rest), PowerOfTwo(d, n));
}

template <class D, class V> HWY_INLINE V PowOfFloats(D d, V x, V y) {
  auto value = InDoubles(
      d, [](auto wide, auto a, auto b) HWY_ATTR { return MagnitudeOfPower(wide, a, b); }, hn::Abs(x), y);
  const auto usual = hn::And(hn::Eq(x, x), hn::Lt(hn::Abs(y), hn::Inf(d)));
  const auto has_sign = hn::Lt(hn::CopySign(hn::Set(d, 1.0f), x), hn::Zero(d));
  if (HWY_UNLIKELY(!hn::AllFalse(d, has_sign))) {
    const auto half = hn::Mul(y, hn::Set(d, 0.5f));
    const auto is_whole = hn::Eq(hn::Round(y), y);
    const auto is_odd = hn::AndNot(hn::Eq(hn::Round(half), half), is_whole);
    value = hn::IfThenElse(hn::And(has_sign, is_odd), hn::Neg(value), value);
    const auto is_negative = hn::And(hn::Lt(x, hn::Zero(d)), hn::Lt(hn::Abs(x), hn::Inf(d)));
    value = hn::IfThenElse(hn::AndNot(is_whole, is_negative), hn::NaN(d), value);
  }
  return WhereUsual(d, usual, value, [&]() HWY_ATTR { return Pow(d, x, y); });
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();
#endif
#endif
