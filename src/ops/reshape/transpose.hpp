// Facts about transposes, for other ops.
#pragma once
#include <vector>

#include <tessera/array.hpp>

namespace tessera {

// By which x is the transpose of its node's input, and has not been computed; nullptr: it is not.
const std::vector<int>* pending_permutation(const Array& x);

}  // namespace tessera
