#include "ops/index/update/addressed.hpp"

#include <algorithm>

#include "kernels/elementwise/elementwise.hpp"
#include "types/box.hpp"

namespace tessera {
namespace {

kernels::Addressed addressed_dim(std::size_t d, const Shape& global, const Box& box, const GatherParams& p) {
  return {global[d], p.out_of_range == OutOfRange::clamp, box[d].start, box[d].stop};
}
// The positions of entries [first, first + n) of an index array.
void positions_along(const Tile& index, std::int64_t first, std::int64_t n, const kernels::Addressed& dim,
                     std::int64_t* out) {
  kernels::find_positions(index.dtype, index.data + first * static_cast<std::int64_t>(itemsize(index.dtype)),
                          n, dim, out);
}

}  // namespace

void positions_of_piece(std::span<const Tile> indices, const Shape& global, const Box& box,
                        const GatherParams& p, std::int64_t first, std::span<std::int64_t> out) {
  const auto n = static_cast<std::int64_t>(out.size());
  positions_along(indices[0], first, n, addressed_dim(p.first, global, box, p), out.data());
  std::vector<std::int64_t> next(p.count > 1 ? out.size() : 0);
  for (int k = 1; k < p.count; ++k) {
    const auto d = static_cast<std::size_t>(p.first + k);
    const auto size = box[d].size();
    positions_along(indices[k], first, n, addressed_dim(d, global, box, p), next.data());
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = out[i] < 0 || next[i] < 0 ? -1 : out[i] * size + next[i];
  }
}

std::vector<std::int64_t> positions_in_block(std::span<const Tile> indices, const Shape& global,
                                             const Box& box, const GatherParams& p) {
  std::vector<std::int64_t> positions(indices[0].elements());
  for_pieces(indices, global, box, p, 0, indices[0].elements(),
             [&](std::int64_t first, std::span<const std::int64_t> piece) {
               std::copy(piece.begin(), piece.end(), positions.begin() + first);
             });
  return positions;
}

kernels::AxisView view_of(const Shape& block, const GatherParams& p) {
  kernels::AxisView view;
  for (int d = 0; d < block.ndim(); ++d)
    (d < p.first ? view.outer : d < p.first + p.count ? view.extent : view.inner) *= block[d];
  return view;
}

RuleReading read_addressed(const Params& params, std::span<const Shape>) {
  return {{{{'L', gather_params(params).first}, {'A', gather_params(params).count}}}, {}};
}

std::vector<Array> index_inputs(std::span<const Array> in, const GatherParams& p) {
  return {in.begin() + 1, in.begin() + 1 + p.count};
}

int split_dim(const std::vector<std::vector<int>>& axes, const GatherParams& p) {
  int found = -1;
  for (int d = p.first; d < p.first + p.count; ++d) {
    if (axes[d].empty()) continue;
    if (found >= 0) return -1;
    found = d;
  }
  return found;
}

FetchList owners_of(std::span<const Tile> indices, const Tile& x, int dim, std::int64_t ranks,
                    const GatherParams& p) {
  const auto extent = x.global[dim];
  const auto block = block_size(extent, ranks);
  Box box = x.box;
  box[dim] = {0, extent};  // a block with the complete split dim
  const auto entries = indices[0].elements();
  FetchList list{std::vector<int>(entries, -1), std::vector<std::int64_t>(entries)};
  std::int64_t inner = 1;
  for (int d = dim + 1; d < p.first + p.count; ++d) inner *= x.global[d];
  for_pieces(
      indices, x.global, box, p, 0, entries, [&](std::int64_t first, std::span<const std::int64_t> piece) {
        for (const auto place : piece) {
          const auto i = first++;
          if (place < 0) continue;
          const auto row = p.count == 1 ? place : place / inner, at = p.count == 1 ? row : row % extent,
                     owner = at / block;
          const auto own = block_range(extent, ranks, owner);
          list.owner[i] = static_cast<int>(owner);
          list.position[i] = p.count == 1
                                 ? at - own.start
                                 : (row / extent * own.size() + at - own.start) * inner + place % inner;
        }
      });
  return list;
}

}  // namespace tessera
