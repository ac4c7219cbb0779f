// Strided copies of one pattern at many addresses.
#pragma once
#include <tessera/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tessera::kernels {

// A strided copy (copy.hpp), made ready once for many places. In its shortest form: dst strides positive and
// descending, no dim of extent 1, no two dims that could be merged.
struct StridedCopy {
  struct Dim {
    std::int64_t extent, dst, src;  // strides in elements
  };
  std::vector<Dim> dims;
  std::size_t itemsize;
  std::int64_t dst_begin = 0, src_begin = 0;  // bytes from the addresses to the first copied elements
  bool empty = false;

  StridedCopy(std::span<const std::int64_t> dst_strides, std::span<const std::int64_t> src_strides,
              const Shape& extents, std::size_t bytes);
  void run(std::byte* dst, const std::byte* src) const;

 private:
  void merge();
  void widen();
};

}  // namespace tessera::kernels
