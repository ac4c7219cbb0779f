// result[i] = x[indices[i]] along one dim, zeros for index -1; indices are known when the op is recorded.
#pragma once
#include "graph/op.hpp"

namespace tessera {

Array reorder(const Array& x, std::vector<int> indices, int dim);

}  // namespace tessera
