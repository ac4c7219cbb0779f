// Dims addressed by index arrays: helpers shared by gathers and scatters.
#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "graph/op.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/move/positions.hpp"
#include "ops/index/fetch.hpp"
#include "ops/index/gather.hpp"

namespace tessera {

struct GatherParams {
  int first = 0, count = 0;  // the addressed dims
  OutOfRange out_of_range = OutOfRange::clamp;
  std::string op = "";  // scatter
  Shape shape = {};     // scatter_add_zeros: of the result
  template <class V> void fields(V&& visit) const {
    visit("first", first);
    visit("count", count);
    visit("out_of_range", out_of_range);
    visit("op", op);
    visit("shape", shape);
  }
};
inline const GatherParams& gather_params(const Params& p) { return p.as<GatherParams>(); }

// Positions in the block `box` of the addressed dims, flattened; -1 for elements that the block lacks.
std::vector<std::int64_t> positions_in_block(std::span<const Tile> indices, const Shape& global,
                                             const Box& box, const GatherParams& p);
// The same for the list's entries from `first`.
void positions_of_piece(std::span<const Tile> indices, const Shape& global, const Box& box,
                        const GatherParams&, std::int64_t first, std::span<std::int64_t> out);
// Calls f(first entry, positions) in order for pieces of entries [begin, end) that fit the L1 cache.
template <class F> void for_pieces(std::span<const Tile> indices, const Shape& global, const Box& box,
                                   const GatherParams& p, std::int64_t begin, std::int64_t end, F&& f) {
  constexpr std::int64_t piece = 1024;
  std::int64_t positions[piece];
  for (; begin < end; begin += piece) {
    const std::span<std::int64_t> some(positions, static_cast<std::size_t>(std::min(piece, end - begin)));
    positions_of_piece(indices, global, box, p, begin, some);
    f(begin, std::span<const std::int64_t>(some));
  }
}
// The block as (dims before, addressed dims, dims after).
kernels::AxisView view_of(const Shape& block, const GatherParams& p);
// The dims before the addressed ones, L, and the addressed ones, A.
RuleReading read_addressed(const Params& params, std::span<const Shape>);
// The index arrays among the inputs x, indices..., (updates).
std::vector<Array> index_inputs(std::span<const Array> in, const GatherParams& p);
// The only addressed dim that is split; -1 if there is none or several.
int split_dim(const std::vector<std::vector<int>>& axes, const GatherParams& p);
// For each entry of the list the rank of a group along `dim` that holds its element, and the position in the
// addressed dims of that rank's block. x is this rank's block, whose other addressed dims are unsplit.
FetchList owners_of(std::span<const Tile> indices, const Tile& x, int dim, std::int64_t ranks,
                    const GatherParams& p);

}  // namespace tessera
