// Kernels that can work piece by piece on operands in their present layout: the answer of such an op when the
// planner asks whether its operands should be moved first.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "program/program.hpp"

namespace tessera {

// A kernel with the layouts of its operands and result.
struct AlgorithmArgs {
  std::span<const Type> in;
  const Type& out;
  std::span<const Sharding> layouts;  // present layouts of the inputs
  std::span<const Sharding> needed;   // layouts that the kernel needs
  const Sharding& out_layout;
  const MeshAxes& used_axes;  // axes over which inputs or the output are partial
  const Params& params;
  const MeshAxes& fixed_axes;
  // Set for a kernel with partial output of which each rank keeps a block of `kept_dim`.
  const Sharding* kept = nullptr;
  int kept_dim = -1;
};
struct ChosenAlgorithm {
  const OpDef* op = nullptr;  // runs on the inputs in place; nullptr: move them, then run the kernel
  ParamsPtr params;
  std::vector<CommunicationCost> costs;
  std::int64_t temporary_bytes = 0;
  std::vector<PlannedCandidate> candidates;  // for explain; empty: there was no choice
};
using ChooseAlgorithm = ChosenAlgorithm (*)(const AlgorithmArgs&);

// Registers an op before main.
struct CanWorkByPieces {
  CanWorkByPieces(const OpDef& op, ChooseAlgorithm);
};
ChooseAlgorithm pieces_of(const OpDef&);  // nullptr: this op's operands are always moved

}  // namespace tessera
