/// @file
/// Products whose operands are not in the layout that they need: the choice of an algorithm, and its memory
/// limit.
///
/// **Sharding, communication, numbers, errors.** Those of products in ops/contract.hpp.
#pragma once
#include <cstdint>
#include <optional>
#include <source_location>
#include <vector>

#include <tessera/array.hpp>

namespace tessera {

/// The algorithm for a product whose operands are not in the layout that a rank needs. All give the same
/// result up to rounding; one that does not apply counts as `automatic`.
enum class ProductAlgorithm {
  automatic,     ///< the fastest within the memory limit, as predicted; `explain` lists them
  whole,         ///< operands are moved completely, then multiplied
  inner_panels,  ///< fetches pieces of the contracted dim during the summation (SUMMA, or a ring on one axis)
  row_panels,    ///< fetches pieces of a's rows; b stays in place
  column_panels,  ///< fetches pieces of b's columns; a stays in place
  inner_shared,   ///< mesh axes that would be idle share the contracted dim, then add their terms (2.5-D)
};
/// Options of products.
struct MatmulOptions {
  ProductAlgorithm algorithm = ProductAlgorithm::automatic;  ///< the requested algorithm
  /// Memory that a rank may use besides operands and result. 0: a ninth of its blocks of them, at least 4 MiB
  /// (8 MiB for operands that are moved whole). If no algorithm fits, the one with the least memory is used.
  std::int64_t memory_limit_bytes = 0;
  /// The dtype in which products are accumulated and returned: float32 for bfloat16 operands, int32 for int8.
  /// If operands are wider, the result is rounded to it. nullopt: the operands' dtype; halves are summed in
  /// float32 and rounded once.
  std::optional<Dtype> preferred_element_type = {};
};
/// Options for every product recorded during its lifetime, including those inside einsum and tensordot;
/// gradients keep the options of their product. Nests: the innermost scope counts. ArgumentError for a
/// negative limit.
class MatmulScope {
 public:
  /// Applies from here to the end of the scope.
  explicit MatmulScope(MatmulOptions);
  ~MatmulScope();
  MatmulScope(const MatmulScope&) = delete;
  MatmulScope& operator=(const MatmulScope&) = delete;

 private:
  MatmulOptions before_;
};

/// matmul(a, b), computed with these options.
[[nodiscard]] Array matmul(const Operand& a, const Operand& b, MatmulOptions options);
/// The product of two or more matrices, multiplied in the order with the fewest multiplications
/// (numpy.linalg.multi_dot); the first and the last may be 1-D. ArgumentError for fewer than two operands,
/// ShapeError for other dims or extents that do not match.
[[nodiscard]] Array multi_dot(const std::vector<Array>& operands,
                              std::source_location where = std::source_location::current());

}  // namespace tessera
