#include "kernels/move/copy.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/thresholds.hpp"
#include "kernels/move/stream.hpp"
#include "kernels/move/strided_copy.hpp"
#include "kernels/move/transpose_tile.hpp"
#include "kernels/parallel.hpp"

namespace tessera::kernels {
namespace {

using Dim = StridedCopy::Dim;

// Items of each size at any address: elements are only moved, and an item may comprise several elements.
// (Structs, because a template argument loses the attributes of a typedef.)
using Item1 = std::uint8_t;
struct __attribute__((packed, may_alias)) Item2 {
  std::uint16_t bits;
};
struct __attribute__((packed, may_alias)) Item4 {
  std::uint32_t bits;
};
struct __attribute__((packed, may_alias)) Item8 {
  std::uint64_t bits;
};
struct __attribute__((packed, may_alias)) Item16 {
  std::uint64_t low, high;
};

template <class F> void visit_item(std::size_t itemsize, F&& f) {
  switch (itemsize) {
    case 1: return f(static_cast<Item1*>(nullptr));
    case 2: return f(static_cast<Item2*>(nullptr));
    case 4: return f(static_cast<Item4*>(nullptr));
    case 8: return f(static_cast<Item8*>(nullptr));
    case 16: return f(static_cast<Item16*>(nullptr));
    default:
      throw InternalError("kernels::copy: items of " + std::to_string(itemsize) +
                          " bytes; 1, 2, 4, 8 and 16 are known");
  }
}

// Calls body(dst, src) for every index of dims, the last dim fastest.
template <class F> void for_each_outer(std::span<const Dim> dims, std::byte* dst, const std::byte* src,
                                       std::int64_t item, F&& body) {
  if (dims.empty()) return body(dst, src);
  const Dim& dim = dims.front();
  for (std::int64_t i = 0; i < dim.extent; ++i, dst += dim.dst * item, src += dim.src * item) {
    if (dims.size() == 1)
      body(dst, src);
    else
      for_each_outer(dims.subspan(1), dst, src, item, body);
  }
}

template <class T>
void copy_line(T* dst, std::int64_t dst_stride, const T* src, std::int64_t src_stride, std::int64_t n) {
  if (dst_stride == 1 && src_stride == 0) {
    const T value = *src;
    for (std::int64_t i = 0; i < n; ++i) dst[i] = value;
  } else if (dst_stride == 1 && src_stride == -1) {
    for (std::int64_t i = 0; i < n; ++i) dst[i] = src[-i];
  } else if (dst_stride == 1) {
    for (std::int64_t i = 0; i < n; ++i) dst[i] = src[i * src_stride];
  } else {
    for (std::int64_t i = 0; i < n; ++i) dst[i * dst_stride] = src[i * src_stride];
  }
}

constexpr std::int64_t shared_bytes = std::int64_t{256} << 10;  // below, one thread is as fast

// Copies far larger than the cache bypass it: their lines are not read soon, and a normal store would fetch
// them first.
constexpr std::int64_t streamed_bytes = std::int64_t{16} << 20;
constexpr std::size_t streamed_line_bytes = 1024;

void copy_lines(const StridedCopy& plan, std::byte* to, const std::byte* from, std::size_t all_bytes) {
  const Dim line = plan.dims.back();
  const std::span<const Dim> outer(plan.dims.data(), plan.dims.size() - 1);
  const auto item = static_cast<std::int64_t>(plan.itemsize);
  if (line.dst == 1 && line.src == 1) {
    const auto bytes = static_cast<std::size_t>(line.extent * item);
    if (static_cast<std::int64_t>(all_bytes) >= threshold(streamed_bytes) && bytes >= streamed_line_bytes) {
      for_each_outer(outer, to, from, item,
                     [&](std::byte* dst, const std::byte* src) { stream_copy(dst, src, bytes); });
      return finish_streaming();
    }
    for_each_outer(outer, to, from, item,
                   [&](std::byte* dst, const std::byte* src) { std::memcpy(dst, src, bytes); });
    return;
  }
  visit_item(plan.itemsize, [&]<class T>(T*) {
    for_each_outer(outer, to, from, item, [&](std::byte* dst, const std::byte* src) {
      copy_line(reinterpret_cast<T*>(dst), line.dst, reinterpret_cast<const T*>(src), line.src, line.extent);
    });
  });
}

// Transposes (fast, last) planes: the last dim has unit stride in dst, dim `fast` has unit stride in src.
void copy_planes(const StridedCopy& plan, std::byte* to, const std::byte* from, std::size_t fast) {
  std::vector<Dim> outer;
  for (std::size_t d = 0; d + 1 < plan.dims.size(); ++d)
    if (d != fast) outer.push_back(plan.dims[d]);
  const Dim &row = plan.dims[fast], &column = plan.dims.back();
  for_each_outer(std::span<const Dim>(outer), to, from, static_cast<std::int64_t>(plan.itemsize),
                 [&](std::byte* dst, const std::byte* src) {
                   transpose_plane(dst, row.dst, src, column.src, row.extent, column.extent, plan.itemsize);
                 });
}

void copy_on_one_thread(const StridedCopy& plan, std::byte* to, const std::byte* from,
                        std::size_t all_bytes) {
  if (plan.dims.back().dst == 1 && plan.dims.back().src != 1 && plan.dims.back().src != 0)
    for (std::size_t d = plan.dims.size() - 1; d-- > 0;)
      if (plan.dims[d].src == 1) return copy_planes(plan, to, from, d);
  copy_lines(plan, to, from, all_bytes);
}

}  // namespace

StridedCopy::StridedCopy(std::span<const std::int64_t> dst_strides, std::span<const std::int64_t> src_strides,
                         const Shape& extents, std::size_t bytes)
    : itemsize(bytes) {
  const auto item = static_cast<std::int64_t>(itemsize);
  dims.reserve(extents.size());
  for (std::size_t d = 0; d < extents.size(); ++d) {
    Dim dim{extents[d], dst_strides[d], src_strides[d]};
    if (dim.extent == 0) empty = true;
    if (dim.extent <= 1) continue;
    if (dim.dst < 0) {  // walk backwards: the last element first
      dst_begin += (dim.extent - 1) * dim.dst * item;
      src_begin += (dim.extent - 1) * dim.src * item;
      dim.dst = -dim.dst;
      dim.src = -dim.src;
    }
    dims.push_back(dim);
  }
  std::stable_sort(dims.begin(), dims.end(), [](const Dim& a, const Dim& b) { return a.dst > b.dst; });
  merge();
  widen();
}

void StridedCopy::merge() {
  std::size_t kept = 0;
  for (std::size_t d = 1; d < dims.size(); ++d) {
    Dim& outer = dims[kept];
    const Dim& inner = dims[d];
    if (outer.dst == inner.dst * inner.extent && outer.src == inner.src * inner.extent)
      outer = {outer.extent * inner.extent, inner.dst, inner.src};
    else
      dims[++kept] = inner;
  }
  if (!dims.empty()) dims.resize(kept + 1);
}

// A short inner dim that is contiguous on both sides becomes a bigger item: two adjacent floats are one
// 8-byte item.
void StridedCopy::widen() {
  while (dims.size() > 1 && dims.back().dst == 1 && dims.back().src == 1) {
    const std::int64_t extent = dims.back().extent;
    const auto bytes = static_cast<std::int64_t>(itemsize) * extent;
    if (bytes != 2 && bytes != 4 && bytes != 8 && bytes != 16) return;
    for (std::size_t d = 0; d + 1 < dims.size(); ++d)
      if (dims[d].dst % extent != 0 || dims[d].src % extent != 0) return;
    dims.pop_back();
    for (auto& dim : dims) dim.dst /= extent, dim.src /= extent;
    itemsize = static_cast<std::size_t>(bytes);
  }
}

void StridedCopy::run(std::byte* dst, const std::byte* src) const {
  if (empty) return;
  dst += dst_begin, src += src_begin;
  if (dims.empty()) {
    std::memcpy(dst, src, itemsize);
    return;
  }
  auto bytes = static_cast<std::int64_t>(itemsize);
  for (const Dim& dim : dims) bytes *= dim.extent;
  if (bytes < threshold(shared_bytes) || threads() == 1)
    return copy_on_one_thread(*this, dst, src, static_cast<std::size_t>(bytes));
  // The dim to split among threads: the outermost that has enough rows for all, else the longest.
  std::size_t d = 0;
  while (d < dims.size() && dims[d].extent < 4 * threads()) ++d;
  if (d == dims.size())
    d = std::max_element(dims.begin(), dims.end(),
                         [](const Dim& a, const Dim& b) { return a.extent < b.extent; }) -
        dims.begin();
  share(dims[d].extent, 1, dims[d].extent >= 256 ? 16 : 1, [&](std::int64_t begin, std::int64_t end) {
    StridedCopy part = *this;
    part.dims[d].extent = end - begin;
    const std::int64_t before = begin * static_cast<std::int64_t>(itemsize);
    copy_on_one_thread(part, dst + before * dims[d].dst, src + before * dims[d].src,
                       static_cast<std::size_t>(bytes));
  });
}

void copy_strided(std::byte* dst, std::span<const std::int64_t> dst_strides, const std::byte* src,
                  std::span<const std::int64_t> src_strides, const Shape& extents, std::size_t itemsize) {
  StridedCopy(dst_strides, src_strides, extents, itemsize).run(dst, src);
}

void transpose(void* dst, const void* src, const Shape& shape, std::span<const int> perm,
               std::size_t itemsize) {
  std::vector<std::int64_t> strides(shape.size(), 1), src_strides(shape.size()), dst_strides(shape.size(), 1),
      extents(shape.size());
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  for (std::size_t d = 0; d < shape.size(); ++d) {
    extents[d] = shape[perm[d]];
    src_strides[d] = strides[perm[d]];
  }
  for (std::size_t d = shape.size(); d-- > 1;) dst_strides[d - 1] = dst_strides[d] * extents[d];
  copy_strided(static_cast<std::byte*>(dst), dst_strides, static_cast<const std::byte*>(src), src_strides,
               Shape(std::move(extents)), itemsize);
}

void fill(void* dst, const void* element, std::size_t itemsize, std::int64_t n) {
  const auto* bytes = static_cast<const unsigned char*>(element);
  if (n <= 0) return;
  const bool same_bytes =
      std::all_of(bytes, bytes + itemsize, [&](unsigned char b) { return b == bytes[0]; });
  share(n, worth_a_thread(static_cast<std::int64_t>(itemsize)), [&](std::int64_t begin, std::int64_t end) {
    auto* const to = static_cast<std::byte*>(dst) + begin * static_cast<std::int64_t>(itemsize);
    if (same_bytes)
      std::memset(to, bytes[0], static_cast<std::size_t>(end - begin) * itemsize);
    else
      visit_item(itemsize, [&]<class T>(T*) {
        copy_line(reinterpret_cast<T*>(to), 1, static_cast<const T*>(element), 0, end - begin);
      });
  });
}

void fill_strided(std::byte* dst, std::span<const std::int64_t> dst_strides, const void* element,
                  const Shape& extents, std::size_t itemsize) {
  const std::vector<std::int64_t> zeros(extents.size(), 0);
  copy_strided(dst, dst_strides, static_cast<const std::byte*>(element), zeros, extents, itemsize);
}

}  // namespace tessera::kernels
