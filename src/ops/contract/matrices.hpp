// Products of parts of tiles, where they lie: gemm takes strides, so that a part of a block, or a block whose
// dims stand in another order, is multiplied without a copy of it.
#pragma once
#include "kernels/dense/gemm.hpp"
#include "ops/contract/dot_general.hpp"

namespace tessera {

// Elements in memory: strides count elements.
struct StridedBlock {
  std::byte* data = nullptr;
  std::vector<std::int64_t> strides;
  Shape extents;
  std::int64_t offset = 0;  // from the first element of the tile
};
// The part `box` of a tile.
StridedBlock block_of(const Tile&, const Box& box);

// c (+)= a . b over the dims of a product. The rows and the columns of c must each lie in one run of strides
// (InternalError otherwise); where those of a or b do not, a copy of it is made. The last pass is told of
// rows and columns of c's whole tile: the dims before the columns of b, and those.
void multiply_blocks(Dtype, const DotDims&, const StridedBlock& a, const StridedBlock& b, bool accumulate,
                     const StridedBlock& c, const kernels::Beside& = {});

}  // namespace tessera
