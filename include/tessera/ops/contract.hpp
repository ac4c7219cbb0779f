/// @file
/// Contractions: products of matrices and tensors, and convolution.
///
/// **Dtypes.** Operands are promoted to one dtype, which is the result's; integers wrap around, bool is "or
/// of ands".
///
/// **Sharding.** Rows and columns keep the operands' splits. If both operands are split alike along the
/// contracted dim, each rank has a term of the sum, and one all-reduce (reduce-scatter, if the result should
/// be split) adds them up. If splits conflict, the operand is moved that needs fewer bytes; `explain` shows
/// which. Uneven blocks are exact.
///
/// **Communication.** Not collective: every function here records.
///
/// **Numbers.** BLAS in the operands' precision: |error| <= k eps |a| |b| elementwise for k terms, in any
/// order (Higham, Accuracy and Stability of Numerical Algorithms, 3.5). Without terms the result is 0.
/// bfloat16 and float16 are multiplied and added in float32, over ranks too, and the result is rounded once;
/// MatmulOptions::preferred_element_type returns it as float32. Operands that are moved whole are sent as two
/// bytes per element, pieces of larger ones as float32.
///
/// **Errors.** ShapeError for extents that do not match, ShardingError for committed operands on different
/// devices. All are raised on every rank when recorded.
#pragma once
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include <tessera/array.hpp>

namespace tessera {

/// @name Products
/// @{

/// The product of matrices, as numpy.matmul: (..., m, k) by (..., k, n) gives (..., m, n); leading dims
/// broadcast; a 1-D operand is a row or a column. ShapeError for scalars.
[[nodiscard]] Array matmul(const Operand& a, const Operand& b);
/// The last dim of a with the second-to-last of b (numpy.dot); for scalars the product.
[[nodiscard]] Array dot(const Operand& a, const Operand& b);
/// sum(conj(a) b) of the flattened operands: a scalar.
[[nodiscard]] Array vdot(const Operand& a, const Operand& b);
/// Contracts the last dims of both; for scalars the product.
[[nodiscard]] Array inner(const Operand& a, const Operand& b);
/// a[i] b[j] of the flattened operands: (size of a, size of b). Nothing moves for 1-D operands of which at
/// most one is split.
[[nodiscard]] Array outer(const Operand& a, const Operand& b);
/// Contracts the last n dims of a with the first n of b, or the named axes pairwise. ArgumentError if their
/// numbers differ.
[[nodiscard]] Array tensordot(const Operand& a, const Operand& b, int n = 2);
[[nodiscard]] Array tensordot(const Operand& a, const Operand& b,
                              std::pair<std::vector<int>, std::vector<int>> axes);
/// The sum of diagonal `offset` of the first two dims: 0 the main one, above it where positive.
[[nodiscard]] Array trace(const Operand& x, int offset = 0);
/// @}

/// @name Einsum
/// @{

/// An expression with its source location, as an Operand has.
struct EinsumExpression {
  /// "ij,jk->ik"
  EinsumExpression(std::string expression, std::source_location written = std::source_location::current())
      : text(std::move(expression)), where(written) {}
  EinsumExpression(const char* expression, std::source_location written = std::source_location::current())
      : text(expression), where(written) {}
  std::string text;            ///< the expression as written
  std::source_location where;  ///< cited by error messages
};
/// einsum with the operands in a vector.
[[nodiscard]] Array einsum_of(const std::string& expression, std::vector<Array> operands,
                              std::source_location where = std::source_location::current());
/// numpy.einsum: `einsum("bij,bjk->bik", a, b)`. Without an arrow the result has the letters that occur once,
/// in alphabetical order; an ellipsis broadcasts; a letter that occurs twice in one operand takes its
/// diagonal. Several operands are contracted pairwise, the cheapest pair first. ArgumentError that names the
/// term for an invalid expression, ShapeError for extents that differ.
template <class... A> [[nodiscard]] Array einsum(const EinsumExpression& expression, const A&... operands) {
  return einsum_of(expression.text, {Array(operands)...}, expression.where);
}
/// @}

/// @name Convolution
/// @{

/// How conv moves its window; empty lists mean 1, or 0, for every spatial dim.
struct ConvOptions {
  std::vector<int> strides = {};                  ///< steps of the window, at least 1
  std::vector<std::pair<int, int>> padding = {};  ///< zeros (before, after) each spatial dim
  std::vector<int> dilation = {};                 ///< distance between the window's taps, at least 1
  int groups = 1;                                 ///< groups of channels that are convolved separately
};
/// The n-d convolution of neural networks (a correlation): x (images, channels, spatial...) and kernel
/// (features, channels / groups, taps...) give (images, features, spatial...). Images, features and groups
/// may be split; split channels leave terms that an all-reduce adds up; along a split spatial dim a rank
/// fetches only the halo that its block reads. ShapeError and ArgumentError that show both shapes.
[[nodiscard]] Array conv(const Operand& x, const Operand& kernel, ConvOptions options = {});
/// @}

}  // namespace tessera
