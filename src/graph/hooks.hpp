// The three hooks through which recording calls code above this layer. The layer that owns a hook sets it
// when the program starts; no fourth hook exists.
#pragma once
#include <vector>

#include "graph/node.hpp"

namespace tessera {

// Computes arrays; set by api, which owns evaluation. Recording calls it when a chain gets too long, since a
// loop that never asks for a value would grow its graph without bound.
extern void (*compute_pending)(const std::vector<Array>&);

// Hooks for operands that an op combines inside a mapped function; set by ops/collective, which owns these
// ops. A value from outside must enter by an op, so that its gradient can leave. Only recording sees all such
// operands, and only these ops can record the entry.
struct RegionHooks {
  // x as every rank's own copy inside the region.
  Array (*enter)(const Array& outer, const RegionPtr& region) = nullptr;
  // x marked as varying over these axes: where a value that is the same on all ranks is combined with one
  // that is not, its cotangent is summed.
  Array (*vary)(const Array& x, std::uint64_t axes) = nullptr;
};
RegionHooks& region_hooks();

// x converted to another dtype; set by ops/elementwise, which owns that op. Recording widens and rounds
// halves (graph/halves.hpp), since every op passes through it, and a conversion is itself an op.
extern Array (*convert_half)(const Array& x, Dtype);

}  // namespace tessera
