// How a product is computed whose operands do not lie where a rank's block of the result needs them. Pure.
//
// Moving an operand as a whole takes its memory once more, or p times that. Instead one dim is cut into
// pieces that are fetched one after the other, from whoever holds them:
//
//   inner     c += a[:, piece] b[piece, :]     the block of c stays (SUMMA on a grid, a ring on one axis)
//   rows      c[piece, :] = a[piece, :] b      b stays
//   columns   c[:, piece] = a b[:, piece]      a stays
//
// Each rank begins with the piece that it holds, so that no two ask the same rank at the same time:
//
//   inner, 3 ranks, rows times rows    rank 0: 0 1 2    rank 1: 1 2 0    rank 2: 2 0 1
//
// Where a mesh axis would leave ranks computing the same, they share the work along it: rows or columns of
// the result, which is gathered into place; or the inner dim, whose terms are added in place. The latter
// moves less on large grids (2.5-D: Solomonik and Demmel, Euro-Par 2011), and a small result has no rows to
// share.
//
//   blocks of n x n over x=4, y=4, z=4, received by a rank     rows over z     3/4 + 3 + 3/4 blocks
//                                                              inner over z     1  + 1 + 3/2
#pragma once
#include "ops/contract/dot_general.hpp"
#include "program/pieces.hpp"

namespace tessera {

enum class Cut { inner, rows, columns };

struct ProductPlan {
  DotDims dims;
  Sharding a_needed, b_needed;  // the blocks that a rank multiplies
  Sharding c_computed;          // its block of the result: the result's own, or a part of that
  Cut cut = Cut::inner;
  int dim_a = -1, dim_b = -1, dim_c = -1;  // the dim that is cut, where an operand has it
  std::int64_t pieces = 1, width = 0;      // of the longest rank; the widest
  double flops = 0;                        // of one rank
  std::vector<std::int64_t> ends = {};     // of the pieces, in the global dim, ascending
  MeshAxes summed_over = {};               // along which ranks hold terms of one block of the result
  template <class V> void fields(V&& visit) const {
    visit("cut", cut);
    visit("pieces", pieces);
    visit("width", width);
    visit("a_needed", a_needed);
    visit("b_needed", b_needed);
    visit("c_computed", c_computed);
    if (!summed_over.empty()) visit("summed_over", summed_over);
  }
};

// The product's answer to the planner. The talk that it names is product_op.
Pieces plan_product(const PieceArgs&, const FactorRule&);
extern const OpDef product_op;

constexpr std::int64_t most_summed_at_once = std::int64_t{2} << 20;  // bytes: bounds what a sum holds beside
// Memory that a rank may hold beside operands and result.
std::int64_t product_limit(const PieceArgs&);
// Times by the rates that all ranks agree on (base/rates.hpp): of one rank's arithmetic; of what it
// receives, a share of it over the link that it shares with the other ranks of its host; of all messages.
double seconds_of_flops(double flops);
double seconds_of_bytes(std::int64_t bytes, double from_other_hosts, std::int64_t ranks_of_a_host);

// [0, extent) cut at `marks` (ascending; block boundaries), longer parts evenly into at most `width`, shorter
// ones joined up to it, but not across `hard` marks. The ends of the pieces.
std::vector<std::int64_t> piece_ends(std::int64_t extent, const std::vector<std::int64_t>& marks,
                                     const std::vector<std::int64_t>& hard, std::int64_t width);

// The pieces of one device in its order. `lie`: the operands' layouts.
std::vector<Range> pieces_in_order(const ProductPlan&, std::span<const Sharding> lie,
                                   std::span<const Shape> shapes, int device);

}  // namespace tessera
