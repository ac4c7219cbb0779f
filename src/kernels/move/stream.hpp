// Copies that bypass the cache: for results far larger than the cache, a normal store would first read the
// lines that it overwrites.
#pragma once
#include <cstddef>

namespace tessera::kernels {

void stream_copy(std::byte* dst, const std::byte* src, std::size_t bytes);
// Makes streamed bytes visible to other threads.
void finish_streaming();

}  // namespace tessera::kernels
