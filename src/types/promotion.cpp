#include "types/promotion.hpp"

#include <algorithm>

namespace tessera {
namespace {

int kind_of(Dtype d) { return is_bool(d) ? 0 : is_integer(d) ? 1 : is_floating(d) ? 2 : 3; }

Dtype promote_strong(Dtype a, Dtype b) {
  if (a == b) return a;
  const int ka = kind_of(a), kb = kind_of(b);
  if (ka == 0) return b;
  if (kb == 0) return a;
  if (ka == 1 && kb == 1) {
    if (is_signed_integer(a) == is_signed_integer(b)) return a.code > b.code ? a : b;
    const Dtype s = is_signed_integer(a) ? a : b, u = is_signed_integer(a) ? b : a;
    const int log2_s = s.code - 1, log2_u = u.code - 5;
    if (log2_s > log2_u) return s;
    return log2_u == 3 ? float32 : Dtype{1 + log2_u + 1};  // the next wider signed type; none beyond u64
  }
  if (ka == 1) return b;
  if (kb == 1) return a;
  if (ka == 3 || kb == 3)
    return a == float64 || b == float64 || a == complex128 || b == complex128 ? complex128 : complex64;
  return a == float64 || b == float64 ? float64 : float32;  // the two halves: neither contains the other
}

// The strongly typed operand keeps its width; a weak one of a higher kind raises the kind.
Dtype lift(Dtype strong, Dtype weak) {
  const int ks = kind_of(strong), kw = kind_of(weak);
  if (kw <= ks) return strong;
  if (kw == 3) return complex_dtype(strong);
  if (kw == 2) return float32;
  return int32;
}

}  // namespace

WeakDtype promote(WeakDtype a, WeakDtype b) {
  if (a.weak == b.weak) return {promote_strong(a.dtype, b.dtype), a.weak};
  const Dtype strong = a.weak ? b.dtype : a.dtype, weak = a.weak ? a.dtype : b.dtype;
  if (is_bool(strong) && !is_bool(weak))
    return {weak, true};  // bool has no width to keep: the number stays weak
  return {lift(strong, weak), false};
}

// Promotes strong operands first: the result must not depend on the position of a scalar among the operands.
WeakDtype promote(std::span<const WeakDtype> types) {
  WeakDtype strong, weak;
  bool any_strong = false, any_weak = false;
  for (const auto& t : types) {
    auto& all = t.weak ? weak : strong;
    auto& any = t.weak ? any_weak : any_strong;
    all = any ? promote(all, t) : t;
    any = true;
  }
  if (!any_strong) return weak;
  return any_weak ? promote(strong, weak) : strong;
}

Dtype to_inexact(Dtype d) { return is_inexact(d) ? d : float32; }

}  // namespace tessera
