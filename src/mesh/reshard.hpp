// Plans for moving an array from one sharding to another. Pure: works for meshes of any size, without MPI.
#pragma once
#include <tessera/sharding.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "mesh/remap.hpp"

namespace tessera {

// The kinds of steps, in their order in a chain. `exchange` sends the intersections of boxes directly between
// any two shardings.
enum class StepKind { all_slice, collective_permute, all_to_all, all_gather, exchange };
const char* step_name(
    StepKind);  // "all-slice", "collective-permute", "all-to-all", "all-gather"; exchange is "all-to-all"

// before:  x split over axis "a" on dim 0     after: dim 0 not split     =>  {all_gather, axes {a}, dim 0}
struct ReshardStep {
  StepKind kind;
  Sharding from, to;       // layouts before and after the step
  MeshAxes axes;           // axes of from.mesh() to communicate over; empty for an exchange across meshes
  int dim = -1;            // the dim that stops being split (all_gather, all_to_all), or is split (all_slice)
  int split_dim = -1;      // all_to_all: the dim that is split
  std::int64_t bytes = 0;  // received by the busiest rank from others
  std::int64_t messages = 0;  // received by that rank
};

struct ReshardPlan {
  std::vector<ReshardStep> steps;  // empty if both shardings hold the same blocks on the same devices
  std::int64_t bytes = 0;          // sum over the steps
};

// The cheaper of the chain slice -> permute -> all-to-all -> all-gather and one direct exchange. Never
// gathers elements that it slices off afterwards. fixed_axes (of the mesh that both share): ranks with
// different coordinates along them hold unrelated data (manual axes of shard_map); no step may cross them.
//
//   P('x', None) -> P(None, 'x')          all_to_all over x
//   P('x', 'y')  -> P()                   all_gather over x on dim 0, all_gather over y on dim 1
//   P()          -> P('x')                all_slice, no bytes
//   P('x', 'y')  -> P('y', 'x'), x == y   collective_permute; x != y: exchange
//
// A named step is used only if it is exact: over blocks of ceil(n/p) an all-gather of minor axes needs coarse
// blocks that are unions of the fine ones. All other steps are exchanges, which receive each missing element
// once. plan_exchange(identity_remap(shape), {step.from}, {shape}, step.to, shape, me, fixed_axes) executes
// any step.
ReshardPlan plan_reshard(const Sharding& from, const Sharding& to, const Shape&, Dtype,
                         const MeshAxes& fixed_axes = {});

// The time that the busiest rank needs for a plan, by the rates of the machine.
double seconds(const ReshardPlan&);

// The same layouts on one mesh, if one mesh can express both: meshes over the same devices in the same order
// whose axes have a common refinement, e.g. ('x': 8) and ('a': 2, 'b': 4). Empty otherwise. For equal meshes:
// the arguments.
std::vector<Sharding> on_common_mesh(const std::vector<Sharding>&);

}  // namespace tessera
