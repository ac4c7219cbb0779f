// Reshapes that change the owners of elements.
#pragma once
#include "graph/op.hpp"

namespace tessera {

// x in a shape from which the reshape to `shape` moves no block; x itself if no block moves anyway, or if its
// layout is not known. See uneven.cpp.
Array with_agreeing_blocks(const Array& x, const Shape& shape);

}  // namespace tessera
