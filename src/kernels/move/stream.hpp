// Copies that bypass the cache: for results far larger than it, a normal store would first read what it
// overwrites.
#pragma once
#include <cstddef>

namespace tessera::kernels {

void stream_copy(std::byte* dst, const std::byte* src, std::size_t bytes);
// Streamed bytes are visible to other threads after this.
void finish_streaming();

}  // namespace tessera::kernels
