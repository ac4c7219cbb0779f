// The inverse error function on Highway vectors (see erf_inv_tables.hpp).
#if defined(TESSERA_KERNELS_ERF_INV_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_KERNELS_ERF_INV_INL_HPP
#undef TESSERA_KERNELS_ERF_INV_INL_HPP
#else
#define TESSERA_KERNELS_ERF_INV_INL_HPP
#endif

#include <hwy/highway.h>

#include <limits>

#include "kernels/elementwise/erf_inv_tables.hpp"
#include "kernels/elementwise/sleef-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {

// p = p * t + c: rounded twice on purpose, so that every instruction set gives the same bits.
template <class D, class V, class T, std::size_t N>
HWY_INLINE V Horner(D d, V t, const T (&coefficients)[N]) {
  V p = hn::Set(d, coefficients[0]);
  for (std::size_t i = 1; i < N; ++i) p = hn::Add(hn::Mul(p, t), hn::Set(d, coefficients[i]));
  return p;
}

// x * p(w) with w = -log(1 - x * x) given.
template <class D, class V> HWY_INLINE V ErfInvOfLog(D d, V x, V w) {
  using T = hn::TFromD<D>;
  V p;
  if constexpr (sizeof(T) == 4) {
    p = Horner(d, hn::Sub(w, hn::Set(d, T(2.5))), erf_inv_f32_center);
    const auto far = hn::Ge(w, hn::Set(d, T(5)));
    if (!hn::AllFalse(d, far))
      p = hn::IfThenElse(far, Horner(d, hn::Sub(hn::Sqrt(w), hn::Set(d, T(3))), erf_inv_f32_tail), p);
  } else {
    p = Horner(d, hn::Sub(w, hn::Set(d, T(3.125))), erf_inv_f64_center);
    const auto far = hn::Ge(w, hn::Set(d, T(6.25)));
    if (!hn::AllFalse(d, far)) {
      const auto root = hn::Sqrt(w);
      p = hn::IfThenElse(far, Horner(d, hn::Sub(root, hn::Set(d, T(3.25))), erf_inv_f64_middle), p);
      const auto very_far = hn::Ge(w, hn::Set(d, T(16)));
      p = hn::IfThenElse(very_far, Horner(d, hn::Sub(root, hn::Set(d, T(5))), erf_inv_f64_tail), p);
    }
  }
  const auto at_one = hn::Eq(hn::Abs(x), hn::Set(d, T(1)));
  return hn::IfThenElse(at_one, hn::Mul(x, hn::Set(d, std::numeric_limits<T>::infinity())), hn::Mul(p, x));
}

// Computed as JAX does: x * x is rounded, so the result loses digits as |x| nears 1 (11 ulp of float32 at 1 -
// 3e-5).
template <class D, class V> HWY_INLINE V ErfInvRounded(D d, V x) {
  return ErfInvOfLog(d, x, hn::Neg(Log1p(d, hn::Neg(hn::Mul(x, x)))));
}
// Exact near |x| = 1, where 1 - |x| has no rounding error.
template <class D, class V> HWY_INLINE V ErfInv(D d, V x) {
  const auto one = hn::Set(d, 1);
  return ErfInvOfLog(d, x, hn::Neg(Log(d, hn::Mul(hn::Sub(one, x), hn::Add(one, x)))));
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();
#endif
