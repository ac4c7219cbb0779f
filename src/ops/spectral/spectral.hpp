// Decompositions that one rank computes: a matrix with split dims is gathered on every rank that needs the
// result (explain shows that), batches keep their layout.
#pragma once
#include <utility>

#include "graph/op.hpp"

namespace tessera::factor {

std::pair<Array, Array> eig(const Array& a);  // complex a: w, v
Array eigvals(const Array& a);
std::pair<Array, Array> schur(const Array& a);  // t, z
Array pivoted_columns(const Array& a);          // int32 (..., n)

}  // namespace tessera::factor
