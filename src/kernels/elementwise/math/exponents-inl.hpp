// Exponents of floats, read from and added to their bits: frexp's and ldexp's.
#if defined(TESSERA_KERNELS_MATH_EXPONENTS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_KERNELS_MATH_EXPONENTS_INL_HPP
#undef TESSERA_KERNELS_MATH_EXPONENTS_INL_HPP
#else
#define TESSERA_KERNELS_MATH_EXPONENTS_INL_HPP
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstdint>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// n of x = m 2^n with |m| in [1/2, 1); 0 for 0, infinities and NaN.
template <class D, class V> HWY_INLINE V FrexpExponent(D d, V x) {
  using T = hn::TFromD<D>;
  const hn::RebindToSigned<D> di;
  constexpr int digits = std::numeric_limits<T>::digits, bias = std::numeric_limits<T>::max_exponent - 2;
  const auto a = hn::Abs(x);
  const auto is_subnormal = hn::Lt(a, hn::Set(d, std::numeric_limits<T>::min()));
  const auto normal = hn::IfThenElse(is_subnormal, hn::Mul(a, hn::Set(d, T(std::int64_t{1} << digits))), a);
  const auto biased = hn::ConvertTo(d, hn::ShiftRight<digits - 1>(hn::BitCast(di, normal)));
  const auto offset = hn::IfThenElse(is_subnormal, hn::Set(d, T(bias + digits)), hn::Set(d, T(bias)));
  const auto usual = hn::And(hn::Gt(a, hn::Zero(d)), hn::Lt(a, hn::Inf(d)));
  return hn::IfThenElseZero(usual, hn::Sub(biased, offset));
}

template <class T> T scaled(T a, T n) {
  const double exponent = n;
  return std::isfinite(exponent)
             ? static_cast<T>(std::scalbln(static_cast<double>(a),
                                           static_cast<long>(std::fmin(std::fmax(exponent, -9000), 9000))))
             : static_cast<T>(static_cast<double>(a) * std::exp2(exponent));
}

// a 2^n. Where 2^n is a normal number, the product is rounded once.
template <class T> void ldexp_map(const void* const* in, void* out, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  constexpr int digits = std::numeric_limits<T>::digits, bias = std::numeric_limits<T>::max_exponent - 1;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  T* r = static_cast<T*>(out);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto exponent = hn::LoadU(d, b + i);
    const auto is_whole = hn::Eq(hn::Trunc(exponent), exponent);
    const auto usual = hn::And(is_whole, hn::Lt(hn::Abs(exponent), hn::Set(d, T(bias))));
    if (HWY_UNLIKELY(!hn::AllTrue(d, usual))) {
      for (std::int64_t lane = i; lane < i + lanes; ++lane) r[lane] = scaled(a[lane], b[lane]);
      continue;
    }
    const auto biased = hn::ConvertTo(di, hn::Add(exponent, hn::Set(d, T(bias))));
    const auto power = hn::BitCast(d, hn::ShiftLeft<digits - 1>(biased));
    hn::StoreU(hn::Mul(hn::LoadU(d, a + i), power), d, r + i);
  }
  for (; i < n; ++i) r[i] = scaled(a[i], b[i]);
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();
#endif
