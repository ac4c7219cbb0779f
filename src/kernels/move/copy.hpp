// Moving elements of one rank's memory: strided copies, transposes, fills, gathers and scatters. Only item
// sizes matter here.
#pragma once
#include <tessera/dtype.hpp>
#include <tessera/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/move/positions.hpp"

namespace tessera::kernels {

// dst[i . dst_strides] = src[i . src_strides] for every i below `extents`. Strides count elements; src
// strides may be negative or 0 (flip, broadcast), dst strides may be negative. dst and src do not overlap.
// itemsize: 1, 2, 4, 8 or 16.
void copy_strided(std::byte* dst, std::span<const std::int64_t> dst_strides, const std::byte* src,
                  std::span<const std::int64_t> src_strides, const Shape& extents, std::size_t itemsize);

// Dense to dense: dst dim i is src dim perm[i]. `shape` is the shape of src.
void transpose(void* dst, const void* src, const Shape& shape, std::span<const int> perm,
               std::size_t itemsize);

void fill(void* dst, const void* element, std::size_t itemsize, std::int64_t n);
void fill_strided(std::byte* dst, std::span<const std::int64_t> dst_strides, const void* element,
                  const Shape& extents, std::size_t itemsize);

// out[i] = start + i * step, computed in the dtype's own arithmetic from the 64-bit product (no accumulation
// of rounding).
void iota(Dtype, void* out, std::int64_t n, std::int64_t start, std::int64_t step, std::int64_t first = 0);
void iota(Dtype, void* out, std::int64_t n, double start, double step, std::int64_t first = 0);

// A dense array as seen along one of its axes: (outer, extent, inner).
struct AxisView {
  std::int64_t outer = 1, extent = 1, inner = 1;
};
AxisView axis_view(const Shape&, int axis);

// dst (outer, n, inner)[o, i, :] = src (outer, extent, inner)[o, indices[i], :]. An index outside [0, extent)
// gives zeros, so that the results of several ranks' blocks can be added.
void gather(void* dst, const void* src, AxisView src_view, std::span<const std::int64_t> indices,
            std::size_t itemsize);

// dst (outer, extent, inner)[o, indices[i], :] op= src (outer, n, inner)[o, i, :], in order of i. op: set
// add multiply min max. An index outside [0, extent) is skipped.
void scatter(std::string_view op, Dtype, void* dst, AxisView dst_view, std::span<const std::int64_t> indices,
             const void* src);

// Indices of one dim as the user gave them.
struct IndexArray {
  Dtype dtype = int64;
  const void* data = nullptr;
  Addressed dim;
};
// gather and scatter with one index per element: indices is (outer, n, inner) dense. (NumPy take_along_axis /
// put_along_axis) A gather translates its indices piece by piece, so that positions stay in the cache.
void gather_along(void* dst, const void* src, AxisView src_view, const IndexArray& indices, std::int64_t n,
                  std::size_t itemsize);
void scatter_along(std::string_view op, Dtype, void* dst, AxisView dst_view, const std::int64_t* indices,
                   std::int64_t n, const void* src);

}  // namespace tessera::kernels
