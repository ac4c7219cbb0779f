// Dims addressed by index arrays: what gathers and scatters share.
#pragma once
#include <string>
#include <vector>

#include "graph/op.hpp"
#include "kernels/move/copy.hpp"
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

// Positions in the block `box` of the addressed dims, seen as one: -1 for what the block does not hold.
std::vector<std::int64_t> positions_in_block(std::span<const Tile> indices, const Shape& global,
                                             const Box& box, const GatherParams& p);
// The block as (dims before, addressed dims, dims after).
kernels::AxisView view_of(const Shape& block, const GatherParams& p);
// The dims before the addressed ones, L, and the addressed ones, A.
RuleReading read_addressed(const Params& params, std::span<const Shape>);
// The index arrays among the inputs x, indices..., (updates).
std::vector<Array> index_inputs(std::span<const Array> in, const GatherParams& p);
// The one addressed dim that is split; -1 when none or several are.
int split_dim(const std::vector<std::vector<int>>& axes, const GatherParams& p);
// For each entry of the list the rank of a group along `dim` that holds it, and its position in the addressed
// dims of that rank's block. x is this rank's block, whose other addressed dims are whole.
FetchList owners_of(std::span<const Tile> indices, const Tile& x, int dim, std::int64_t ranks,
                    const GatherParams& p);

}  // namespace tessera
