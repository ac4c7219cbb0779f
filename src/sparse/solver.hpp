// Functions that the solvers share.
#pragma once
#include <tessera/sparse/krylov.hpp>

#include <functional>

#include "ops/sparse/pattern.hpp"

namespace tessera::sparse {

// ShapeError and DtypeError for an invalid system.
void check_system(const LinearMap& a, const Array& b);
void check_options(const SolverOptions&);

// A system as passed to an iteration.
struct SparseSystem {
  std::function<Array(const Array&)> a, precondition;
  Array b, x0;
  Array limit;  // on the squared residual
  std::int64_t maxiter;
  int restart;
};
SparseSystem system_of(const LinearMap& a, const Array& b, const SolverOptions&);

using Iteration = Solution (*)(const SparseSystem&);
// Runs the iteration; gradients use it to solve the transposed system.
Solution solved(Iteration, const LinearMap& a, const Array& b, const SolverOptions&);

// sum(conj(a) b) as a scalar; its real part.
Array inner(const Array& a, const Array& b);
Array real_inner(const Array& a, const Array& b);

}  // namespace tessera::sparse
