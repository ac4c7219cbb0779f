// This rank's block of a value, for readers outside the library.
#pragma once
#include <tessera/array.hpp>

#include "types/buffer.hpp"

namespace tessera {

// The buffer keeps the memory intact for its holder: donating or deleting the array neither overwrites nor
// frees it.
struct LocalBlock {
  Buffer buffer;
  Shape shape;  // all 0 on a rank without a block
};

// Computes x. Collective over the ranks of x.
LocalBlock local_block(const Array& x);

}  // namespace tessera
