// The algorithm for a product whose operands do not have the layout that a rank's block of the result needs.
// Pure functions.
//
// Moving an operand as a whole takes its memory once more, or p times that. Instead one dim is cut into
// pieces that are fetched one after the other from the ranks that hold them:
//
//   inner     c += a[:, piece] b[piece, :]     the block of c stays (SUMMA on a grid, a ring on one axis)
//   rows      c[piece, :] = a[piece, :] b      b stays
//   columns   c[:, piece] = a b[:, piece]      a stays
//
// Each rank begins with the piece that it holds, so that no two ranks read from one at the same time:
//
//   inner, 3 ranks, rows times rows    rank 0: 0 1 2    rank 1: 1 2 0    rank 2: 2 0 1
//
// If ranks along a mesh axis would compute the same, they share the work: rows or columns of the result,
// which is then gathered in place; or the inner dim, whose terms are added in place. The latter moves less on
// large grids (2.5-D: Solomonik and Demmel, Euro-Par 2011) and suits small results with too few rows.
//
//   blocks of n x n over x=4, y=4, z=4, received by a rank     rows over z     3/4 + 3 + 3/4 blocks
//                                                              inner over z     1  + 1 + 3/2
//                                                              inner over z     1  + 1 + 3/2
#pragma once
#include "ops/contract/dot_general.hpp"
#include "program/algorithms.hpp"

namespace tessera {

enum class Cut { inner, rows, columns };

struct ProductPlan {
  DotDims dims;
  Sharding a_needed, b_needed;  // the blocks that a rank multiplies
  Sharding c_computed;          // its block of the result: the result's own layout, or a part of it
  Cut cut = Cut::inner;
  int dim_a = -1, dim_b = -1, dim_c = -1;  // the dim that is cut, if an operand has it
  std::int64_t pieces = 1, width = 0;      // largest number of any rank; width of the widest piece
  double flops = 0;                        // flops of one rank
  std::vector<std::int64_t> ends = {};     // ends of the pieces in the global dim, ascending
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

// The product's algorithm for the planner; its communicating kernel is product_op.
ChosenAlgorithm plan_product(const AlgorithmArgs&, const FactorRule&);
extern const OpDef product_op;

constexpr std::int64_t most_summed_at_once = std::int64_t{2} << 20;  // bytes: bounds a sum's memory
// The bytes that a rank may hold besides operands and result.
std::int64_t product_limit(const AlgorithmArgs&);
// Seconds by the rates that all ranks agree on (base/rates.hpp): of one rank's arithmetic; and of its
// received bytes, of which a share crosses the link that the ranks of its host share.
double seconds_of_flops(double flops, Dtype);
double seconds_of_bytes(std::int64_t bytes, double from_other_hosts, std::int64_t ranks_of_a_host);

// Cuts [0, extent) at `marks` (ascending; block boundaries): longer parts evenly into pieces of at most
// `width`, shorter ones joined up to it, but never across `hard` marks. Returns the ends of the pieces.
std::vector<std::int64_t> piece_ends(std::int64_t extent, const std::vector<std::int64_t>& marks,
                                     const std::vector<std::int64_t>& hard, std::int64_t width);

// The pieces of one device, in the order in which it multiplies them. `layouts`: the operands' layouts.
std::vector<Range> pieces_in_order(const ProductPlan&, std::span<const Sharding> layouts,
                                   std::span<const Shape> shapes, int device);

}  // namespace tessera
