// Queries about transposes, for other ops.
#pragma once
#include <vector>

#include <tessera/array.hpp>

namespace tessera {

// The permutation by which x transposes its node's input; nullptr if x is evaluated or not a transpose.
const std::vector<int>* pending_permutation(const Array& x);

}  // namespace tessera
