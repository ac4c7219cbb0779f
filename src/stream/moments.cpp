#include "stream/moments.hpp"

#include <tessera/ops.hpp>

#include <algorithm>

#include "ops/create/scalar.hpp"
#include "ops/reduce/reduction.hpp"

namespace tessera::stream {
namespace {

const Node* made_by(const Array& x, const char* op) {
  const Node* node = x.node().get();
  return node->op != nullptr && node->op->name == op ? node : nullptr;
}
bool is_same(const Array& a, const Array& b) { return a.node() == b.node() && a.output() == b.output(); }
// Also true of two conversions of one array: integers are converted for the mean, and again for the
// distances.
bool has_same_values(const Array& a, const Array& b) {
  if (is_same(a, b)) return true;
  const Node *of_a = made_by(a, "astype"), *of_b = made_by(b, "astype");
  return of_a != nullptr && of_b != nullptr && a.dtype() == b.dtype() &&
         is_same(of_a->inputs[0], of_b->inputs[0]);
}

// c of square(c), or of real(c * conj(c)).
std::optional<Array> squared_operand(const Array& x) {
  if (const Node* square = made_by(x, "square")) return square->inputs[0];
  const Node* real = made_by(x, "real");
  const Node* product = real == nullptr ? nullptr : made_by(real->inputs[0], "multiply");
  const Node* conj = product == nullptr ? nullptr : made_by(product->inputs[1], "conj");
  if (conj == nullptr || !is_same(product->inputs[0], conj->inputs[0])) return std::nullopt;
  return conj->inputs[0];
}

std::optional<std::vector<int>> summed_dims(const Node& node) {
  if (node.op == nullptr || node.op->name != "sum") return std::nullopt;
  return node.params->as<ReduceParams>().dims;
}
Shape with_ones(const Shape& shape, const std::vector<int>& dims) {
  auto extents = shape.vector();
  for (const int d : dims) extents[static_cast<std::size_t>(d)] = 1;
  return Shape(std::move(extents));
}
bool is_number(const Array& x, double number) {
  const auto value = scalar_value(x);
  return value && (value->is_integer ? std::complex<double>(static_cast<double>(value->integer))
                                     : value->floating) == number;
}

}  // namespace

double elements_along(const Shape& shape, const std::vector<int>& dims) {
  double n = 1;
  for (const int d : dims) n *= static_cast<double>(shape[static_cast<std::size_t>(d)]);
  return n;
}

std::optional<CentredSum> centred_sum_of(const Node& node) {
  const auto dims = summed_dims(node);
  const auto centred = dims ? squared_operand(node.inputs[0]) : std::nullopt;
  const Node* difference = centred ? made_by(*centred, "subtract") : nullptr;
  const Node* mean = difference == nullptr ? nullptr : made_by(difference->inputs[1], "divide");
  const Node* kept = mean == nullptr ? nullptr : made_by(mean->inputs[0], "reshape");
  if (kept == nullptr) return std::nullopt;
  const Array &x = difference->inputs[0], &total = kept->inputs[0];
  if (summed_dims(*total.node()) != dims || !has_same_values(total.node()->inputs[0], x) ||
      !(mean->outputs[0].type.shape == with_ones(x.shape(), *dims)) ||
      !is_number(mean->inputs[1], elements_along(x.shape(), *dims)))
    return std::nullopt;
  return CentredSum{total, x, difference->inputs[1], *centred, *dims};
}

Array squares_about_mean(const Array& squares, const Array& distances, double n) {
  const Array added = is_complex(distances.dtype()) ? real(distances * conj(distances)) : square(distances);
  return maximum(squares - added / n, 0.0);  // of equal elements only rounding is left
}

}  // namespace tessera::stream
