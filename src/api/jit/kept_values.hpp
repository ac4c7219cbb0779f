// Values of the forward pass that backward passes read: for explain.
#pragma once
#include <tessera/jit/explain.hpp>

#include <vector>

#include "compile/graph.hpp"
#include "transforms/backward.hpp"

namespace tessera {

// The largest first; equal ones in recording order.
std::vector<KeptValue> kept_values(const Graph&, const std::vector<Array>& arguments, const BackwardPasses&);

}  // namespace tessera
