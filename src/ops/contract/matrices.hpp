// Products of parts of tiles in place: gemm takes strides, so a part of a block, or a block whose dims are in
// another order, is multiplied without a copy.
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

// c (+)= a . b over the dims of a product. The rows and the columns of c must each be one run of strides
// (InternalError otherwise); an operand whose rows or columns are not is copied. The last pass gets rows and
// columns of c's complete tile: the dims before the columns of b, and those columns.
void multiply_blocks(Dtype, const DotDims&, const StridedBlock& a, const StridedBlock& b, bool accumulate,
                     const StridedBlock& c, const kernels::Beside& = {});

}  // namespace tessera
