/// @file
/// The same bits on every number of ranks: sums and products in an order that neither ranks nor layouts
/// decide.
///
/// Floating-point addition rounds, so that a sum depends on its order. By default each rank adds up its
/// block, and then the ranks' results are added: another number of ranks gives other last digits. In a
/// ReproducibleScope every sum is the tree over the elements' *global* positions, every product adds up its
/// inner dim in one order, and so on: values have the same bits for any number of ranks, mesh, layout,
/// number of threads, and run. The page "The same bits" lists what holds and what it costs.
#pragma once

namespace tessera {

/// For all that is recorded while it lives; gradients and batched forms of it included, wherever they are
/// taken. Nests: the innermost counts. `TESSERA_REPRODUCIBLE=1` is the default of a program, `jit(f,
/// {.reproducible = true})` the same for one function.
///
/// **Sharding.** Results lie where they lie without it. **Communication.** Sums exchange the nodes of the
/// tree: about twice log2(n) values a rank in the place of one, and at most 126 elements of a long line's
/// ends. Where a contracted dim is split, operands of products are moved in the place of terms.
/// Factorizations send panels of columns to the ranks that hold the matrix. **Errors.** ShardingError where
/// an op cannot keep the promise for these operands, naming what to do. **Not** local: enter and leave it on
/// every rank alike.
/// Source: pairwise summation, after Blanchard, Higham and Mary, A class of fast and accurate summation
/// algorithms, SIAM J. Sci. Comput. 42 (2020).
class ReproducibleScope {
 public:
  /// `on` false: a part of the program that does without, inside of one that does not.
  explicit ReproducibleScope(bool on = true);
  ~ReproducibleScope();
  ReproducibleScope(const ReproducibleScope&) = delete;
  ReproducibleScope& operator=(const ReproducibleScope&) = delete;

 private:
  int before_;
};

/// Whether what is recorded now keeps to one order. Local.
bool is_reproducible();

}  // namespace tessera
