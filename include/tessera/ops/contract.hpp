// Contractions: products of matrices and tensors, and convolution.
#pragma once
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include <tessera/array.hpp>

namespace tessera {

Array matmul(const Operand& a, const Operand& b);
Array dot(const Operand& a, const Operand& b);
Array vdot(const Operand& a, const Operand& b);
Array inner(const Operand& a, const Operand& b);
Array outer(const Operand& a, const Operand& b);
Array tensordot(const Operand& a, const Operand& b, int n = 2);
Array tensordot(const Operand& a, const Operand& b, std::pair<std::vector<int>, std::vector<int>> axes);
Array trace(const Operand& x);

// An expression that remembers where it was written, as an Operand does: a parameter pack leaves no room for
// the place behind it.
struct EinsumExpression {
  EinsumExpression(std::string expression, std::source_location written = std::source_location::current())
      : text(std::move(expression)), where(written) {}
  EinsumExpression(const char* expression, std::source_location written = std::source_location::current())
      : text(expression), where(written) {}
  std::string text;
  std::source_location where;
};
Array einsum_of(const std::string& expression, std::vector<Array> operands,
                std::source_location where = std::source_location::current());
template <class... A> Array einsum(const EinsumExpression& expression, const A&... operands) {
  return einsum_of(expression.text, {Array(operands)...}, expression.where);
}

struct ConvOptions {
  std::vector<int> strides = {};
  std::vector<std::pair<int, int>> padding = {};
  std::vector<int> dilation = {};
  int groups = 1;
};
Array conv(const Operand& x, const Operand& kernel, ConvOptions options = {});

}  // namespace tessera
