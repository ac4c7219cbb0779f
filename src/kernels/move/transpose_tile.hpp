// Transposes of planes: the inner loop of copy.cpp if source and destination are contiguous along different
// dims.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tessera::kernels {

// dst[i * dst_stride + j] = src[j * src_stride + i] for i < rows, j < columns; strides in items, either sign.
void transpose_plane(std::byte* dst, std::int64_t dst_stride, const std::byte* src, std::int64_t src_stride,
                     std::int64_t rows, std::int64_t columns, std::size_t itemsize);

}  // namespace tessera::kernels
