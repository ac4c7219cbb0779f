// Kernels that can also work piece by piece on operands as they lie: what such an op answers when the planner
// asks whether its operands should be moved first.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "program/program.hpp"

namespace tessera {

// A kernel, and the layouts around it.
struct PieceArgs {
  std::span<const Type> in;
  const Type& out;
  std::span<const Sharding> lie;     // the inputs, as they are
  std::span<const Sharding> needed;  // where the kernel wants them
  const Sharding& out_layout;
  const MeshAxes& used_axes;  // over which inputs or the output are terms of a sum
  const Params& params;
  const MeshAxes& fixed_axes;
  // Asked about a kernel whose output is terms of a sum, of which each rank keeps a block of `kept_dim`.
  const Sharding* kept = nullptr;
  int kept_dim = -1;
};
struct Pieces {
  const OpDef* op = nullptr;  // a talk, on the inputs as they lie; nullptr: move them, then run the kernel
  ParamsPtr params;
  std::vector<TalkCost> costs;
  std::int64_t temporary_bytes = 0;
  std::vector<PlannedCandidate> candidates;  // for explain; empty: there was nothing to choose
};
using PiecesFunction = Pieces (*)(const PieceArgs&);

// Filled before main.
struct CanWorkByPieces {
  CanWorkByPieces(const OpDef& op, PiecesFunction);
};
PiecesFunction pieces_of(const OpDef&);  // nullptr: this op's operands are moved

}  // namespace tessera
