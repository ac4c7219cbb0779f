#include "support/operands.hpp"

#include <tessera/ops.hpp>

#include <algorithm>
#include <complex>
#include <numeric>

namespace tessera::test {
namespace {

double value_at(const OperandSample& operand, std::int64_t rank, std::int64_t n, std::mt19937& random) {
  const double jitter = 0.25 + 0.5 * static_cast<double>(random() >> 8) / (1 << 24);
  const double at = (static_cast<double>(rank) + jitter) / static_cast<double>(n);
  if (is_inexact(operand.dtype)) return operand.low + at * (operand.high - operand.low);
  return operand.low + static_cast<double>(random() % static_cast<unsigned>(operand.high - operand.low + 1));
}

}  // namespace

std::vector<Array> values_of(const std::vector<OperandSample>& samples, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Array> operands;
  for (const auto& operand : samples) {
    const auto n = operand.shape.elements();
    const auto part = [&] {
      std::vector<std::int64_t> order(n);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      std::vector<double> values;
      for (const auto rank : order) values.push_back(value_at(operand, rank, n, random));
      return values;
    };
    const auto re = part();
    if (is_complex(operand.dtype)) {
      const auto im = part();
      std::vector<std::complex<double>> values;
      for (std::size_t i = 0; i < re.size(); ++i) values.emplace_back(re[i], im[i]);
      operands.push_back(array(values, operand.shape));
    } else {
      operands.push_back(astype(array(re, operand.shape), operand.dtype));
    }
  }
  return operands;
}

Array random_like(const Array& x, std::mt19937& random) {
  const auto part = [&] {
    std::vector<double> values;
    for (std::int64_t i = 0; i < x.size(); ++i)
      values.push_back(static_cast<double>(random() >> 8) / (1 << 23) - 1);
    return array(values, x.shape());
  };
  return is_complex(x.dtype()) ? astype(make_complex(part(), part()), x.dtype()) : astype(part(), x.dtype());
}

}  // namespace tessera::test
