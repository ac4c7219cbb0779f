// This rank's block of a value, for whoever looks at it from outside.
#pragma once
#include <tessera/array.hpp>

#include "types/buffer.hpp"

namespace tessera {

// The buffer keeps the memory as it is for whoever holds it: what is donated or deleted is neither written
// over nor freed then.
struct LocalBlock {
  Buffer buffer;
  Shape shape;  // zeros on a rank that holds none
};

// Collective over the ranks of x: computes it.
LocalBlock local_block(const Array& x);

}  // namespace tessera
