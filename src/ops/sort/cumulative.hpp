// Running sums and products along a dim, from either end.
#pragma once
#include <string>

#include "graph/op.hpp"

namespace tessera {

// op: sum prod. Over a split dim: a scan of each block, then an exclusive scan of the blocks' totals in
// log2(parts) steps.
Array cumulative(const std::string& op, const Array& x, int dim, bool reverse, std::source_location where);

}  // namespace tessera
