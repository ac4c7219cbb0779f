// The three calls that go up: what recording needs from rooms above this one. Each room sets its own when the
// program starts, and nobody else does; there is no fourth.
#pragma once
#include <vector>

#include "graph/node.hpp"

namespace tessera {

// Computes arrays; set by api, which owns the road from graph to values. A loop that never asks for a value
// would otherwise grow its graph without end: recording calls this when a chain gets too long.
extern void (*compute_pending)(const std::vector<Array>&);

// Hooks for operands that an op combines inside a mapped function; set by ops/collective, which owns these
// ops. A value from outside that meets one inside must enter by an op, so that its gradient can leave: only
// recording sees every meeting, and only the ops know how to record it.
struct RegionHooks {
  // As every rank's own copy.
  Array (*enter)(const Array& outer, const RegionPtr& region) = nullptr;
  // Said to vary over these axes: where a value that is the same on all ranks meets one that is not, its
  // cotangent is summed.
  Array (*vary)(const Array& x, std::uint64_t axes) = nullptr;
};
RegionHooks& region_hooks();

// x as another dtype; set by ops/elementwise, which owns that op. Recording widens and rounds halves (graph/
// halves.hpp): there every op passes, whoever records it, and a conversion is an op as well.
extern Array (*convert_half)(const Array& x, Dtype);

}  // namespace tessera
