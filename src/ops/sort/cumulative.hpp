// Running sums, products, extrema and logsumexps along a dim, from either end.
#pragma once
#include "graph/op.hpp"

namespace tessera {

// kind: sum, prod, max, min, logsumexp. Over a split dim: a scan of each block, then an exclusive scan of the
// blocks' totals in log2(parts) steps.
Array cumulative(ReduceKind kind, const Array& x, int dim, bool reverse);

// The kind and params of a node that cumulative() recorded.
struct Running {
  ReduceKind kind;
  int dim;
  bool reverse;
  bool is_in_order;  // of a ReproducibleScope: one element after the other
};
std::optional<Running> running_of(const Node&);

}  // namespace tessera
