// Selection for vectors that are read from files slab by slab.
#pragma once
#include <cstdint>
#include <vector>

#include "graph/op.hpp"

namespace tessera {

// (positions): the elements that a sort would put at these positions of x (n), float32 or float64; NaN last,
// and 0 for -0. Each of two rounds (float32) or four (float64) reads x once, and ranks add up 65,536 counts a
// position.
Array elements_by_rounds(const Array& x, const std::vector<std::int64_t>& positions);

}  // namespace tessera
