#include "support/op_samples.hpp"

#include <tessera/ops.hpp>

#include <algorithm>
#include <numeric>

#include "support/samples/table.hpp"

namespace tessera::test {
namespace {

double value_at(const OperandSample& operand, std::int64_t rank, std::int64_t n, std::mt19937& random) {
  const double jitter = 0.25 + 0.5 * static_cast<double>(random() >> 8) / (1 << 24);
  const double at = (static_cast<double>(rank) + jitter) / static_cast<double>(n);
  if (is_inexact(operand.dtype)) return operand.low + at * (operand.high - operand.low);
  return operand.low + static_cast<double>(random() % static_cast<unsigned>(operand.high - operand.low + 1));
}

}  // namespace

const std::vector<OpSample>& op_samples() {
  static const auto rows = [] {
    Table t;
    for (const auto family : {elementwise_samples, special_samples,  reduction_samples,   statistics_samples,
                              shape_samples,       index_samples,    sort_samples,        contraction_samples,
                              convolution_samples, window_samples,   linalg_samples,      collective_samples,
                              fourier_samples,     creation_samples, arrangement_samples, numeric_samples,
                              sized_samples,       network_samples,  sparse_samples,      control_samples})
      family(t);
    return std::move(t.rows);
  }();
  return rows;
}

const std::map<std::string, std::string>& ops_tested_elsewhere() {
  static const std::map<std::string, std::string> ops{
      {"alias", "what transformations put around their arguments: tests/transforms"},
      {"custom_vjp", "tests/transforms"},
      {"barrier", "what checkpoint puts before a second computation: tests/transforms"},
      {"while_loop", "needs values that are not known: tests/control"},
      {"cond", "needs a predicate that is not known: tests/control"},
      {"psum_groups", "tests/ops/collective"},
      {"effect", "what prints and calls back inside a trace: tests/debug"},
      {"host_call",
       "a function of the program, called in the middle of one: tests/python/test_jax_internals.py"},
      {"reorder", "the same devices in another order, for pmap: tests/ops/collective"},
      {"pmax_groups", "tests/ops/collective"},
      {"pmin_groups", "tests/ops/collective"},
      {"random_poisson_rounds", "drawn again until all samples are accepted, inside poisson"},
      {"random_binomial_rounds", "the same inside binomial"},
      {"random_integers", "its bounds are operands of randint: tests/random"},
  };
  return ops;
}

std::vector<Array> operands_of(const OpSample& sample, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Array> operands;
  for (const auto& operand : sample.operands) {
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
