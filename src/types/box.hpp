// Boxes: half-open n-d index ranges in the global index space. Pure arithmetic on tessera::Index.
#pragma once
#include <tessera/shape.hpp>

namespace tessera {

using Box = Index;

Box whole_box(const Shape&);            // [0:n0, 0:n1, ...]
Shape box_shape(const Box&);            // extents; never negative
std::int64_t box_elements(const Box&);  // product of the extents
bool is_empty(const Box&);              // some extent is 0 (a 0-d box holds one element, so it is not empty)
Box intersect(const Box&, const Box&);  // same ndim; empty ranges come out as [a, a)
bool contains(const Box& outer, const Box& inner);

// Row-major strides, in elements.
std::vector<std::int64_t> row_major_strides(const Shape&);

// n over p parts: the block of part i is [i*ceil(n/p), min(n, (i+1)*ceil(n/p))); the last blocks may be short
// or empty.
// ceil(n/p): the size of the first, largest block. Inlined, since planning calls it very often.
inline std::int64_t block_size(std::int64_t n, std::int64_t parts) {
  return n == 0 ? 0 : (n - 1) / parts + 1;  // n + parts - 1 might overflow
}
inline Range block_range(std::int64_t n, std::int64_t parts, std::int64_t part) {
  const std::int64_t block = block_size(n, parts);
  std::int64_t start = 0;
  if (__builtin_mul_overflow(part, block, &start) || start > n) start = n;
  return {start, n - start > block ? start + block : n};
}

// a*b and a+b in 64 bits; on overflow a ShapeError that names the quantity.
std::int64_t checked_mul(std::int64_t a, std::int64_t b, const char* what);
std::int64_t checked_elements(const Shape&, const char* what);
std::int64_t checked_bytes(const Shape&, std::size_t itemsize, const char* what);

}  // namespace tessera
