// The candidate algorithms for a product, each with its cost; product_plan chooses one. Pure functions.
//
//   question   the facts known before the choice
//   blocks     the layouts of the operands' and the result's blocks on each rank  (product_blocks.cpp)
//   pieces     the cut of a dim into pieces                                         (product_choice.cpp)
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
  const AlgorithmArgs& args;
  const FactorRule& rule;
  const DotDims& dims;
  std::int64_t item;
  std::int64_t limit;
  std::int64_t panels_at_once;  // per fetched operand: one if it is read in place; else one that
                                // is multiplied, one that is received and one that is sent
  const Mesh& mesh;
  std::int64_t ranks_of_a_host;  // ranks that share its network link
};

std::int64_t bytes_of(const Sharding& layout, const Type& type);  // bytes of the largest block

// The cost of fetching one operand.
struct Fetched {
  bool moves = false;
  std::int64_t bytes = 0, peers = 0, block_bytes = 0;
  double from_other_hosts = 0;  // the share of bytes from other hosts
};
// The layouts of the blocks that each rank multiplies.
struct ProductBlocks {
  Sharding a, b, c;
  std::array<Fetched, 2> operands;
  std::string shared_over = {};  // mesh axes that would otherwise be idle
  MeshAxes shared_axes = {};
  // Bytes of the result that a rank receives if ranks share the work: gathered as parts, or summed as terms.
  std::int64_t gathered_bytes = 0, summed_bytes = 0;
};
MeshAxes axes_between(const Sharding& from, const Sharding& to, int ndim);  // each axis once
ProductBlocks make_blocks(const ProductQuestion&, const Sharding& a, const Sharding& b, const Sharding& c);
double flops_of(const ProductQuestion&, const ProductBlocks&);
// The seconds of the arithmetic, or of reading the operands if that is longer (few rows times few columns).
double seconds_of_work(const ProductQuestion&, const ProductBlocks&);
double seconds_of_messages(const ProductQuestion&, const ProductBlocks&, std::int64_t messages);
// Blocks that use all mesh axes, if possible: parts of the result, or of the contracted dim.
std::optional<ProductBlocks> shared_blocks(const ProductQuestion&);
std::optional<ProductBlocks> summed_blocks(const ProductQuestion&);

// Finds the dims that are cut; false if this cut has none.
bool find_cut_dims(const ProductQuestion&, const ProductBlocks&, ProductPlan&);
void set_pieces(const ProductQuestion&, ProductPlan&, std::int64_t width);

struct Candidate {
  ProductBlocks blocks;
  PlannedCandidate planned = {};
  ProductAlgorithm algorithm = ProductAlgorithm::whole;
  std::optional<ProductPlan> plan = {};  // nullopt: the operands are moved, then the kernel runs
};

std::vector<Candidate> all_candidates(const ProductQuestion&);  // candidate 0 moves each operand in one piece

}  // namespace tessera
