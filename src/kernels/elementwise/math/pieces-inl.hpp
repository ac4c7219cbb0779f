// Pieces of the functions of this folder.
#if defined(TESSERA_KERNELS_MATH_PIECES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_KERNELS_MATH_PIECES_INL_HPP
#undef TESSERA_KERNELS_MATH_PIECES_INL_HPP
#else
#define TESSERA_KERNELS_MATH_PIECES_INL_HPP
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// c[0] + c[1] x + c[2] x^2 ..., added in pairs (Estrin): few dependent steps.
template <class D, class V, class T, std::size_t N> HWY_INLINE V Polynomial(D d, V x, const T (&c)[N]) {
  if constexpr (N == 1) {
    return hn::Set(d, c[0]);
  } else {
    V terms[(N + 1) / 2];
    for (std::size_t i = 0; i + 1 < N; i += 2)
      terms[i / 2] = hn::MulAdd(hn::Set(d, c[i + 1]), x, hn::Set(d, c[i]));
    if (N % 2 == 1) terms[N / 2] = hn::Set(d, c[N - 1]);
    for (std::size_t n = (N + 1) / 2; n > 1; n = (n + 1) / 2) {
      x = hn::Mul(x, x);
      for (std::size_t i = 0; i + 1 < n; i += 2) terms[i / 2] = hn::MulAdd(terms[i + 1], x, terms[i]);
      if (n % 2 == 1) terms[n / 2] = terms[n - 1];
    }
    return terms[0];
  }
}

// v = m 2^e with m in [sqrt(1/2), sqrt(2)), for normal v > 0.
template <class V> struct Split { V m, e; };
template <class D, class V> HWY_INLINE Split<V> SplitAtRootOfTwo(D d, V v) {
  static_assert(std::is_same_v<hn::TFromD<D>, double>);
  const hn::RebindToUnsigned<D> du;
  constexpr std::uint64_t root = 0x3fe6a09e667f3bcdu, one = std::uint64_t{1023} << 52;
  const auto from_root = hn::Add(hn::BitCast(du, v), hn::Set(du, one - root));  // the upper bits are e + 1023
  const auto m = hn::Add(hn::And(from_root, hn::Set(du, (std::uint64_t{1} << 52) - 1)), hn::Set(du, root));
  // The integer in the lowest bits of 2^52.
  const auto e = hn::Or(hn::ShiftRight<52>(from_root), hn::Set(du, std::uint64_t{0x433} << 52));
  return {hn::BitCast(d, m), hn::Sub(hn::BitCast(d, e), hn::Set(d, 0x1p52 + 1023))};
}

// 2^n for an integer n in [-1022, 1023].
template <class D, class V> HWY_INLINE V PowerOfTwo(D d, V n) {
  const hn::RebindToUnsigned<D> du;
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    const auto biased = hn::Add(n, hn::Set(d, 0x1.8p23f + 127));  // the integer is in the lowest bits
    return hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, biased)));
  } else {
    const auto biased = hn::Add(n, hn::Set(d, 0x1.8p52 + 1023));
    return hn::BitCast(d, hn::ShiftLeft<52>(hn::BitCast(du, biased)));
  }
}

// f(half, v) of both halves of float32 vectors, computed in float64 and rounded once.
template <class D, class V, class F, class... W> HWY_INLINE V InDoubles(D d, F f, V v, W... more) {
#if HWY_TARGET == HWY_SCALAR
  const hn::Rebind<double, D> wide;
  // Highway's conversion of one number gives the largest float where the result is infinite.
  return hn::Set(
      d, static_cast<float>(hn::GetLane(f(wide, hn::PromoteTo(wide, v), hn::PromoteTo(wide, more)...))));
#else
  const hn::Half<D> half;
  const hn::Rebind<double, decltype(half)> wide;
  const auto low =
      f(wide, hn::PromoteTo(wide, hn::LowerHalf(half, v)), hn::PromoteTo(wide, hn::LowerHalf(half, more))...);
  const auto high =
      f(wide, hn::PromoteTo(wide, hn::UpperHalf(half, v)), hn::PromoteTo(wide, hn::UpperHalf(half, more))...);
  return hn::Combine(d, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
#endif
}

// value where `usual`, else what the function of all arguments gives; it is called only if needed.
template <class D, class M, class V, class All> HWY_INLINE V WhereUsual(D d, M usual, V value, All all) {
  if (HWY_LIKELY(hn::AllTrue(d, usual))) return value;
  return hn::IfThenElse(usual, value, all());
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();
#endif
