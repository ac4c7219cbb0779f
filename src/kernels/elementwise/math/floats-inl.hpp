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
