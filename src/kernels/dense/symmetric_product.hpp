// x^T x and x x^T: elements below the diagonal are computed, those above are copied from them.
#pragma once
#include "kernels/dense/gemm.hpp"

namespace tessera::kernels {

// Does the product if its operands are one matrix and its transpose, and it is large enough to gain by that.
// The result has the bits of packed_product where that is used; otherwise those of BLAS's ?syrk.
bool symmetric_product(const MatrixProduct&, const Beside&);

}  // namespace tessera::kernels
