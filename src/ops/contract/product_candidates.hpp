// The ways to compute a product, each with what it costs: what product_plan chooses among. Pure.
//
//   question   what is known before anything is chosen
//   blocks     where the operands' and the result's blocks lie that a rank multiplies (product_blocks.cpp)
//   pieces     how the dim that is cut falls into pieces                             (product_pieces.cpp)
//   candidate  both together, with bytes, memory and seconds                     (product_candidates.cpp)
#pragma once
#include <array>
#include <optional>
#include <string>

#include "mesh/reshard.hpp"
#include "mesh/route.hpp"
#include "ops/contract/product_plan.hpp"

namespace tessera {

struct ProductQuestion {
  const PieceArgs& args;
  const FactorRule& rule;
  const DotDims& dims;
  std::int64_t item;
  std::int64_t limit;
  std::int64_t panels_at_once;  // that a fetched operand takes: one where it is read in place; else one that
                                // is multiplied, one that arrives and one that leaves
  const Mesh& mesh;
  std::int64_t ranks_of_a_host;  // that share its link to the others
};

std::int64_t bytes_of(const Sharding& layout, const Type& type);  // of the largest block

// The cost of fetching one operand.
struct Fetched {
  bool moves = false;
  std::int64_t bytes = 0, peers = 0, block_bytes = 0;
  double from_other_hosts = 0;  // the share of its bytes
};
// The layouts of the blocks that each rank multiplies.
struct Blocks {
  Sharding a, b, c;
  std::array<Fetched, 2> operands;
  std::string shared_over = {};  // mesh axes over which ranks would compute the same otherwise
  MeshAxes shared_axes = {};
  std::int64_t gathered_bytes = 0, summed_bytes = 0;  // of the result: one of them, if axes are shared
};
MeshAxes axes_between(const Sharding& from, const Sharding& to, int ndim);  // each once
Blocks make_blocks(const ProductQuestion&, const Sharding& a, const Sharding& b, const Sharding& c);
double flops_of(const ProductQuestion&, const Blocks&);
// The seconds of the arithmetic, or of reading its operands, where that is more: a few rows times a few
// columns.
double seconds_of_work(const ProductQuestion&, const Blocks&);
double seconds_of_messages(const ProductQuestion&, const Blocks&, std::int64_t messages);
// Blocks that leave no mesh axis idle, where there are any: parts of the result, or of the inner dim.
std::optional<Blocks> shared_blocks(const ProductQuestion&);
std::optional<Blocks> summed_blocks(const ProductQuestion&);

// The dims that a cut goes through; false: it has none.
bool find_cut_dims(const ProductQuestion&, const Blocks&, ProductPlan&);
void set_pieces(const ProductQuestion&, ProductPlan&, std::int64_t width);

struct Candidate {
  Blocks blocks;
  PlannedCandidate told = {};
  ProductAlgorithm algorithm = ProductAlgorithm::whole;
  std::optional<ProductPlan> plan = {};  // nothing: the operands are moved, then the kernel runs
};

std::vector<Candidate> all_candidates(const ProductQuestion&);  // operands moved whole first

}  // namespace tessera
