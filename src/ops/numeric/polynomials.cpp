// Polynomials as coefficients, the highest power first.
#include <tessera/ops/numeric.hpp>

#include <algorithm>

#include "ops/build.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

const Array& coefficients_of(const Operand& p) {
  check_usable(p.array);
  if (p.array.ndim() != 1)
    throw ShapeError(call_text() + ": the coefficients have shape " + to_string(p.array.shape()) +
                     "; they must have one dimension");
  return p.array;
}
Array as_long_as(const Array& p, std::int64_t n) {
  return p.size() == n ? p : pad(p, {{static_cast<int>(n - p.size()), 0}});
}
void check_order(int m) {
  if (m < 0) throw ArgumentError(call_text() + ": the order " + std::to_string(m) + " is negative");
}
// n, n - 1, ..., 1
Array falling(std::int64_t n, Dtype dtype) { return arange_of(n, std::int64_t{0}, std::int64_t{-1}, dtype); }

}  // namespace

Array polyval(const Operand& coefficients, const Operand& x) {
  const Call call("polyval", coefficients.where);
  const Array& p = coefficients_of(coefficients);
  check_usable(x.array);
  Array y = zeros_like(x.array);
  for (std::int64_t i = 0; i < p.size(); ++i) y = y * x.array + p(i);
  return y;
}
Array polyadd(const Operand& a, const Operand& b) {
  const Call call("polyadd", a.where);
  const auto n = std::max(coefficients_of(a).size(), coefficients_of(b).size());
  return as_long_as(a.array, n) + as_long_as(b.array, n);
}
Array polysub(const Operand& a, const Operand& b) {
  const Call call("polysub", a.where);
  const auto n = std::max(coefficients_of(a).size(), coefficients_of(b).size());
  return as_long_as(a.array, n) - as_long_as(b.array, n);
}
Array polymul(const Operand& a, const Operand& b) {
  const Call call("polymul", a.where);
  return convolve(coefficients_of(a), coefficients_of(b));
}
Array polyder(const Operand& coefficients, int m) {
  const Call call("polyder", coefficients.where);
  check_order(m);
  Array p = coefficients_of(coefficients);
  for (; m > 0 && p.size() > 0; --m) p = p(slice(None, -1)) * falling(p.size() - 1, p.dtype());
  return p;
}
Array polyint(const Operand& coefficients, int m) {
  const Call call("polyint", coefficients.where);
  check_order(m);
  Array p = cast_to(coefficients_of(coefficients), to_inexact(coefficients.array.dtype()));
  for (; m > 0; --m) p = pad(p / falling(p.size(), p.dtype()), {{0, 1}});
  return p;
}

}  // namespace tessera
