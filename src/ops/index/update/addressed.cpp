#include "ops/index/update/addressed.hpp"

#include <algorithm>

#include "kernels/elementwise/elementwise.hpp"
#include "types/box.hpp"

namespace tessera {
namespace {

std::vector<std::int64_t> as_int64(const Tile& tile) {
  std::vector<std::int64_t> values(tile.elements());
  const void* in = tile.data;
  if (!values.empty()) kernels::find_cast(tile.dtype, int64)(&in, values.data(), tile.elements());
  return values;
}

}  // namespace

std::vector<std::int64_t> positions_in_block(std::span<const Tile> indices, const Shape& global,
                                             const Box& box, const GatherParams& p) {
  std::vector<std::int64_t> positions(indices[0].elements(), 0);
  for (int k = 0; k < p.count; ++k) {
    const auto d = static_cast<std::size_t>(p.first + k);
    const auto extent = global[d];
    const auto values = as_int64(indices[k]);
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto at = values[i] < 0 ? values[i] + extent : values[i];
      if (p.out_of_range == OutOfRange::clamp)
        at = std::clamp<std::int64_t>(at, 0, std::max<std::int64_t>(extent - 1, 0));
      if (positions[i] < 0) continue;
      positions[i] =
          at < box[d].start || at >= box[d].stop ? -1 : positions[i] * box[d].size() + at - box[d].start;
    }
  }
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
  box[dim] = {0, extent};  // a block that holds all of the split dim
  FetchList list;
  std::int64_t inner = 1;
  for (int d = dim + 1; d < p.first + p.count; ++d) inner *= x.global[d];
  for (const auto place : positions_in_block(indices, x.global, box, p)) {
    if (place < 0) {
      list.add(-1, 0);
      continue;
    }
    const auto at = place / inner % extent, owner = at / block;
    const auto own = block_range(extent, ranks, owner);
    list.add(static_cast<int>(owner),
             (place / inner / extent * own.size() + at - own.start) * inner + place % inner);
  }
  return list;
}

}  // namespace tessera
