// Boxes in tiles' memory, as exchanges need them.
#pragma once
#include <vector>

#include "types/tile.hpp"

namespace tessera {

// A transfer's box in a tile's memory.
struct StridedBox {
  std::int64_t offset = 0;  // elements
  std::vector<std::int64_t> strides;
  Shape extents;
  std::int64_t elements = 0;
  bool contiguous = false;
};

inline bool is_contiguous(const StridedBox& r) {
  std::int64_t expected = 1;
  for (std::size_t d = r.extents.size(); d-- > 0;) {
    if (r.extents[d] != 1 && r.strides[d] != expected) return false;
    expected *= r.extents[d];
  }
  return true;
}

inline StridedBox destination_box(const Tile& tile, const Index& to) {
  StridedBox r;
  r.strides = row_major_strides(tile.shape());
  r.extents = box_shape(to);
  r.elements = r.extents.elements();
  for (std::size_t d = 0; d < to.size(); ++d) r.offset += (to[d].start - tile.box[d].start) * r.strides[d];
  r.contiguous = is_contiguous(r);
  return r;
}

// The number of elements that are contiguous on both sides, in the order of the box.
inline std::int64_t common_run(const StridedBox& a, const StridedBox& b) {
  std::int64_t run = 1;
  for (std::size_t d = a.extents.size(); d-- > 0;) {
    if (a.extents[d] == 1) continue;
    if (a.strides[d] != run || b.strides[d] != run) break;
    run *= a.extents[d];
  }
  return run;
}

// Calls use(offset in a, offset in b, elements) for each common run, in order.
template <class F> void for_each_run(const StridedBox& a, const StridedBox& b, F&& use) {
  const std::int64_t run = common_run(a, b);
  std::size_t outer = a.extents.size();  // outer dims, which are iterated
  for (std::int64_t inside = 1; outer > 0 && inside < run;) inside *= a.extents[--outer];
  std::vector<std::int64_t> index(outer, 0);
  std::int64_t at_a = a.offset, at_b = b.offset;
  if (a.elements == 0) return;
  for (;;) {
    use(at_a, at_b, run);
    std::size_t d = outer;
    while (d > 0) {
      --d;
      at_a += a.strides[d], at_b += b.strides[d];
      if (++index[d] < a.extents[d]) break;
      at_a -= a.strides[d] * a.extents[d], at_b -= b.strides[d] * b.extents[d];
      index[d] = 0;
      if (d == 0) return;
    }
    if (outer == 0) return;
  }
}

}  // namespace tessera
