// Plans for moving an array from one sharding to another. Pure: works for meshes of any size without MPI.
#pragma once
#include <tessera/sharding.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "mesh/remap.hpp"

namespace tessera {

// In the order in which a chain may use them. `exchange` sends the intersections of boxes directly between any two shardings.
enum class StepKind { all_slice, collective_permute, all_to_all, all_gather, exchange };
const char* step_name(StepKind);  // "all-slice", "collective-permute", "all-to-all", "all-gather"; exchange is "all-to-all"

// before:  x split over axis "a" on dim 0     after: whole on dim 0     =>  {all_gather, axes {a}, dim 0}
struct ReshardStep {
  StepKind kind;
  Sharding from, to;        // layouts before and after the step
  std::vector<int> axes;    // mesh axes of from.mesh() over which ranks talk; empty for an exchange across meshes
  int dim = -1;             // the dimension that becomes whole (all_gather, all_to_all), or is cut (all_slice)
  int split_dim = -1;       // all_to_all: the dimension that becomes split
  std::int64_t bytes = 0;   // that the busiest rank receives from others
};

struct ReshardPlan {
  std::vector<ReshardStep> steps;  // empty when the two shardings hold the same blocks on the same devices
  std::int64_t bytes = 0;          // sum over the steps
};

// The cheaper of the chain slice -> permute -> all-to-all -> all-gather and one direct exchange. Never gathers what it then slices.
// fixed_axes (of the mesh that both share): ranks with different coordinates along them hold unrelated data (manual axes of
// shard_map); no step may cross them.
ReshardPlan plan_reshard(const Sharding& from, const Sharding& to, const Shape&, Dtype, const std::vector<int>& fixed_axes = {});

// The same two layouts on one mesh, when one mesh can express both: meshes over the same devices in the same order whose axes have
// a common refinement, e.g. ('x': 8) and ('a': 2, 'b': 4). Empty otherwise. For equal meshes: the arguments.
std::vector<Sharding> on_common_mesh(const std::vector<Sharding>&);

}  // namespace tessera
