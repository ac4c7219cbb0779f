/// @file
/// The same bits on every number of ranks: sums and products in an order that depends neither on ranks nor on
/// layouts.
///
/// Floating-point addition rounds, so that a sum depends on its order. By default each rank adds up its
/// block, and then the ranks' results are added: another number of ranks gives other last digits. In a
/// ReproducibleScope every sum is the tree over the elements' *global* positions, every product adds up its
/// inner dim in one order, and so on: values have the same bits for any number of ranks, mesh, layout,
/// number of threads, and run. The page "The same bits" lists what holds and what it costs.
#pragma once

namespace tessera {

/// A scope for everything that is recorded while it exists, including its gradients and batched forms,
/// wherever these are taken. Scopes nest: the innermost one applies. `TESSERA_REPRODUCIBLE=1` sets the
/// default of a program, `jit(f, {.reproducible = true})` does the same for one function.
///
/// **Sharding.** Results have the layouts that they have without it. **Communication.** Sums exchange the
/// nodes of the tree: about twice log2(n) values per rank instead of one, and at most 126 elements at the
/// ends of a long line. If a contracted dim is split, operands of products are moved instead of terms.
/// Factorizations send panels of columns to the ranks that hold the matrix. **Errors.** ShardingError, with a
/// remedy, if an op cannot give the same bits for these operands. **Not** local: enter and leave it on every
/// rank alike.
/// Source: pairwise summation, after Blanchard, Higham and Mary, A class of fast and accurate summation
/// algorithms, SIAM J. Sci. Comput. 42 (2020).
class ReproducibleScope {
 public:
  /// `on` false: switches an enclosing scope off.
  explicit ReproducibleScope(bool on = true);
  ~ReproducibleScope();
  ReproducibleScope(const ReproducibleScope&) = delete;
  ReproducibleScope& operator=(const ReproducibleScope&) = delete;

 private:
  int before_;
};

/// Whether ops recorded now get the same bits on any number of ranks. Local.
bool is_reproducible();

}  // namespace tessera
