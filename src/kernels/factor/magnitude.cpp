#include "kernels/factor/magnitude.hpp"

#include <algorithm>
#include <bit>

namespace tessera::kernels {
namespace {

// Keeps several sums at a time, and the largest as integers: the bits of non-negative floats are ordered like
// their values, with infinity and NaN above them.
template <class R, class Bits> void add_parts(Magnitude& to, const R* values, std::int64_t count) {
  constexpr int lanes = 16;
  constexpr Bits without_sign = ~Bits{0} >> 1;
  double sums[lanes] = {};
  Bits largest[lanes] = {};
  const auto take = [&](const R& value, int lane) {
    const Bits bits = std::bit_cast<Bits>(value) & without_sign;
    largest[lane] = std::max(largest[lane], bits);
    sums[lane] += static_cast<double>(std::bit_cast<R>(bits));
  };
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int lane = 0; lane < lanes; ++lane) take(values[i + lane], lane);
  for (; i < count; ++i) take(values[i], 0);
  const R most = std::bit_cast<R>(*std::max_element(largest, largest + lanes));
  to.largest = most <= std::numeric_limits<R>::max() ? std::max(to.largest, static_cast<double>(most))
                                                     : std::numeric_limits<double>::infinity();
  for (const double sum : sums) to.sum += sum;
  to.parts += count;
}

}  // namespace

void Magnitude::add(const float* values, std::int64_t count) {
  add_parts<float, std::uint32_t>(*this, values, count);
}
void Magnitude::add(const double* values, std::int64_t count) {
  add_parts<double, std::uint64_t>(*this, values, count);
}

// Lower bounds: |A|_1 >= the mean column; |x|_2 >= its largest element, and >= sqrt(n) times its mean
// element.
double estimated_rcond(std::int64_t n, const Magnitude& matrix, const Magnitude& solution) {
  if (!solution.is_finite()) return 0;
  const auto size = static_cast<double>(n);
  const double of_inverse = std::max(solution.largest, solution.mean() * std::sqrt(size));
  return 1 / (matrix.mean() * size) / of_inverse;
}

}  // namespace tessera::kernels
