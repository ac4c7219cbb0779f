// Singular values of block-cyclic matrices by ScaLAPACK, which uses the same layout.
#pragma once
#include "ops/factor/grid.hpp"

namespace tessera::factor {

// a (m x n, destroyed) = u (m x k) diag(s) vh (k x n); u and vh are both given or both null. False: no
// convergence.
template <class T>
bool svd(const Grid&, GridMatrix<T>& a, GridMatrix<T>* u, real_of<T>* s, GridMatrix<T>* vh);

}  // namespace tessera::factor
