// Blocks that come from outside, as buffers.
#pragma once
#include <tessera/array/host.hpp>

#include "types/buffer.hpp"

namespace tessera {

// The memory of a host array that nobody else has; nothing where a copy shares it.
Buffer taken_over(HostArray& host);

}  // namespace tessera
