// Decompositions that one rank makes: of a matrix whose own dims are split, every rank that needs the result
// gathers it (explain shows that), batches stay where they are.
#pragma once
#include <utility>

#include "graph/op.hpp"

namespace tessera::factor {

std::pair<Array, Array> eig(const Array& a);  // complex a: w, v
Array eigvals(const Array& a);
std::pair<Array, Array> schur(const Array& a);  // t, z
Array pivoted_columns(const Array& a);          // int32 (..., n)

}  // namespace tessera::factor
