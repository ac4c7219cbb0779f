/// @file
/// How products are computed whose operands do not lie where they are needed: choosing an algorithm, and
/// limiting its memory.
///
/// **Sharding, communication, numbers, errors.** As ops/contract.hpp says of products.
#pragma once
#include <cstdint>
#include <optional>
#include <source_location>
#include <vector>

#include <tessera/array.hpp>

namespace tessera {

/// How a product is computed whose operands do not lie where a rank needs them. Any of them gives the same
/// result up to rounding; one that does not apply is as `automatic`.
enum class ProductAlgorithm {
  automatic,     ///< the fastest that keeps to the memory limit, as predicted; `explain` lists them
  whole,         ///< operands are moved as a whole, then multiplied
  inner_panels,  ///< pieces of the contracted dim are fetched while the sum grows (SUMMA; a ring on one axis)
  row_panels,    ///< pieces of a's rows are fetched: b stays
  column_panels,  ///< pieces of b's columns are fetched: a stays
  inner_shared,   ///< mesh axes that would be idle share the contracted dim, then add their terms (2.5-D)
};
/// Options of products.
struct MatmulOptions {
  ProductAlgorithm algorithm = ProductAlgorithm::automatic;  ///< asked for
  /// Memory that a rank may hold beside operands and result. 0: a ninth of its blocks of them, at least 4 MiB
  /// (8 MiB for operands that are moved whole). Where nothing fits, the least is taken.
  std::int64_t memory_limit_bytes = 0;
  /// The dtype in which products are added up and returned: float32 for bfloat16 operands, int32 for int8.
  /// Where operands are wider, the result is rounded to it. Nothing: the operands' dtype, in which halves
  /// are rounded once, after sums in float32.
  std::optional<Dtype> preferred_element_type = {};
};
/// Options for every product recorded while it lives, those inside of einsum and tensordot too; gradients
/// keep the options of their product. Nests: the innermost counts. ArgumentError for a negative limit.
class MatmulScope {
 public:
  /// From here to the end of the scope.
  explicit MatmulScope(MatmulOptions);
  ~MatmulScope();
  MatmulScope(const MatmulScope&) = delete;
  MatmulScope& operator=(const MatmulScope&) = delete;

 private:
  MatmulOptions before_;
};

/// matmul(a, b), computed as the options say.
[[nodiscard]] Array matmul(const Operand& a, const Operand& b, MatmulOptions options);
/// The product of two or more matrices, multiplied in the order of the fewest multiplications
/// (numpy.linalg.multi_dot); the first and the last may be 1-D. ArgumentError for fewer than two operands,
/// ShapeError for other dims or extents that do not match.
[[nodiscard]] Array multi_dot(const std::vector<Array>& operands,
                              std::source_location where = std::source_location::current());

}  // namespace tessera
