// The cost of a factorization panel by panel over a grid of ranks (ops/factor) for a rank, beside the
// products that update the trailing matrix: the panel's own factors, and the way of panels and rows into
// these products.
#pragma once
#include "base/rates.hpp"
#include "program/program.hpp"

namespace tessera {

// Factorizations that go panel by panel over a grid of ranks.
struct GridFactorization {
  const char* op;
  bool has_pivots;
  bool moves_left;  // rows change places left of the panel too
  double flops;     // of n^3
};
// nullptr: the instruction is none of one square matrix over all ranks of its mesh.
const GridFactorization* grid_factorization_of(const Program&, const Instruction&);

// One multiplication of elements in multiplications of float64 that take as long: a complex one has 4, and of
// float32 two run at once.
constexpr double float64_products(Dtype dtype) {
  return (is_complex(dtype) ? 4 : 1) / (real_dtype(dtype) == float32 ? 2.0 : 1.0);
}

// The arithmetic and memory of a panel's parts on one rank. `item`: bytes of an element;
// `flops_of_a_product`: float64_products.
class PanelCost {
 public:
  PanelCost(const Rates& machine, bool has_pivots, double item, double flops_of_a_product)
      : machine_(machine), has_pivots_(has_pivots), item_(item), flops_(flops_of_a_product) {}

  // Seconds of the factors of a panel, for a rank of the grid column that owns it.
  double factor_seconds(double rows, double width) const;
  // Seconds of every rank from a panel that has arrived to the product: the panel is packed; the top rows of
  // its columns are put in place, and the panel's triangle is solved for them.
  double apply_seconds(double rows, double columns, double width) const;

 private:
  // Seconds of so many reads and writes of each element that is touched.
  double passes(double count, double elements) const {
    return count * elements * item_ / machine_.memory_rate(elements * item_);
  }
  double flops(double count) const { return count * flops_ / machine_.flops_per_s; }

  const Rates& machine_;
  bool has_pivots_;
  double item_, flops_;
};

}  // namespace tessera
