// Blocks from outside the library, as buffers.
#pragma once
#include <tessera/array/host.hpp>

#include "types/buffer.hpp"

namespace tessera {

// The memory of a host array, if no copy shares it; otherwise an empty buffer.
Buffer taken_over(HostArray& host);

}  // namespace tessera
