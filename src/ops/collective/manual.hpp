// Entry to and exit from a mapped function: a global array becomes this rank's block, and a block becomes
// part of a global array.
#pragma once
#include "graph/op.hpp"

namespace tessera {

// This rank's block of x. dims: the axes that are manual in `region` but not around it.
//   x f32[8,6] on ('x': 4, 'y': 2), dims {{x}, {}}:   f32[2,6], varying over x, replicated over y
Array enter_region(const Array& x, const RegionPtr& region, DimAxes dims);
// The global array whose blocks are the ranks' x. `global` is its shape.
Array exit_region(const Array& x, const RegionPtr& region, DimAxes dims, Shape global);

// Axes that are manual in the region but not around it.
std::vector<int> own_axes(const Region&);
std::uint64_t axes_mask(const std::vector<int>& axes);
// x as a value inside the region: a value from outside enters as every rank's own copy.
Array brought_inside(const Array& x, const RegionPtr& region);

}  // namespace tessera
