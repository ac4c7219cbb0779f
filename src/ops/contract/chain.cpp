// Products of several matrices in the order with the fewest multiplications.
#include <tessera/ops/products.hpp>

#include <vector>

#include "ops/build.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

// Operand i is extents[i] x extents[i + 1]. The best product of first..last is cut after split[first][last].
using Splits = std::vector<std::vector<int>>;
Splits best_splits(const std::vector<std::int64_t>& extents) {
  const int n = static_cast<int>(extents.size()) - 1;
  std::vector<std::vector<double>> least(n, std::vector<double>(n, 0));
  Splits split(n, std::vector<int>(n, 0));
  const auto size = [&](int i) { return static_cast<double>(extents[i]); };
  for (int length = 2; length <= n; ++length)
    for (int first = 0; first + length <= n; ++first) {
      const int last = first + length - 1;
      for (int k = first; k < last; ++k) {
        const double cost = least[first][k] + least[k + 1][last] + size(first) * size(k + 1) * size(last + 1);
        if (k > first && cost >= least[first][last]) continue;
        least[first][last] = cost;
        split[first][last] = k;
      }
    }
  return split;
}

Array product_of(const std::vector<Array>& operands, const Splits& split, int first, int last) {
  if (first == last) return operands[first];
  const int k = split[first][last];
  return matmul(product_of(operands, split, first, k), product_of(operands, split, k + 1, last));
}

void check_dims(const std::vector<Array>& operands) {
  if (operands.size() < 2)
    throw ArgumentError(call_text() + ": " + std::to_string(operands.size()) +
                        " operands; a product takes at least two");
  for (std::size_t i = 0; i < operands.size(); ++i) {
    check_usable(operands[i]);
    const bool is_outer = i == 0 || i + 1 == operands.size();
    if (operands[i].ndim() != 2 && !(is_outer && operands[i].ndim() == 1))
      throw ShapeError(call_text() + ": operand " + std::to_string(i) + " has the shape " +
                       to_string(operands[i].shape()) + "; it must be a matrix" +
                       (is_outer ? " or a vector" : ", only the first and the last may be vectors"));
  }
}

}  // namespace

Array multi_dot(const std::vector<Array>& operands, std::source_location where) {
  const Call call("multi_dot", where);
  check_dims(operands);
  std::vector<std::int64_t> extents;
  const auto& first = operands.front().shape();
  extents.push_back(first.ndim() == 1 ? 1 : first[0]);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto& shape = operands[i].shape();
    const bool is_column = i > 0 && shape.ndim() == 1;
    if (const auto rows = i == 0 ? extents[0] : shape[0]; rows != extents.back())
      throw ShapeError(call_text() + ": the inner sizes differ: operand " + std::to_string(i) +
                       " has the shape " + to_string(shape) + ", the one before it " +
                       std::to_string(extents.back()) + " columns. Transpose one of them");
    extents.push_back(is_column ? 1 : shape[shape.ndim() - 1]);
  }
  return product_of(operands, best_splits(extents), 0, static_cast<int>(operands.size()) - 1);
}

}  // namespace tessera
