// Reshapes of uneven blocks.
#pragma once
#include "graph/op.hpp"

namespace tessera {

// The shape of x on the way to `shape` after which the blocks of every rank agree, and the steps to it; x
// itself where they agree, or where no step helps. See uneven.cpp.
Array with_agreeing_blocks(const Array& x, const Shape& shape);

}  // namespace tessera
