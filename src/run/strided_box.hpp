// The source of a transfer, as a strided box in a tile's memory.
#pragma once
#include "mesh/remap.hpp"
#include "types/strided_box.hpp"

namespace tessera {

inline StridedBox source_box(const Tile& tile, const RemapPiece& piece, const Index& to) {
  StridedBox r;
  r.strides = row_major_strides(tile.shape());
  r.extents = box_shape(to);
  r.elements = r.extents.elements();
  for (std::size_t d = 0; d < to.size(); ++d) {
    r.offset += (piece.offset[d] + piece.step[d] * to[d].start - tile.box[d].start) * r.strides[d];
    r.strides[d] *= piece.step[d];
  }
  r.contiguous = is_contiguous(r);
  return r;
}

}  // namespace tessera
