// result[i] = x[indices[i]] along one dim, zeros where the index is -1, for indices that are known when the
// op is recorded.
#pragma once
#include "graph/op.hpp"

namespace tessera {

Array reorder(const Array& x, std::vector<int> indices, int dim);

}  // namespace tessera
