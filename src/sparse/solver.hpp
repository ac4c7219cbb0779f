// Parts that the solvers share.
#pragma once
#include <tessera/sparse/krylov.hpp>

#include <functional>

#include "ops/sparse/pattern.hpp"

namespace tessera::sparse {

// ShapeError and DtypeError for a system that cannot be solved.
void check_system(const LinearMap& a, const Array& b);
void check_options(const SolverOptions&);

// A system as an iteration sees it.
struct System {
  std::function<Array(const Array&)> a, precondition;
  Array b, x0;
  Array limit;  // of the squared residual
  std::int64_t maxiter;
  int restart;
};
System system_of(const LinearMap& a, const Array& b, const SolverOptions&);

using Iteration = Solution (*)(const System&);
// Runs the iteration; gradients of the solution solve the transposed system with it.
Solution solved(Iteration, const LinearMap& a, const Array& b, const SolverOptions&);

// sum(conj(a) b) as a scalar; its real part.
Array inner(const Array& a, const Array& b);
Array real_inner(const Array& a, const Array& b);

}  // namespace tessera::sparse
