// Reshapes in which elements change owner.
#pragma once
#include "graph/op.hpp"

namespace tessera {

// x on the way to `shape`, in a shape from which no block has to move any more; x itself where none has to,
// or where its layout is not known. See uneven.cpp.
Array with_agreeing_blocks(const Array& x, const Shape& shape);

}  // namespace tessera
