// Dims that go together: streamed along one of them, a program is streamed along all.
//
//   x (n, m)   y = sqrt(x)   z = sum(y, 0)      the first dims of x and y are one class, n; z has no dim of
// it
//
// The classes follow from the factors of the ops' sharding rules: a class is what one mesh axis would split.
#pragma once
#include <map>
#include <utility>
#include <vector>

#include "compile/graph.hpp"

namespace tessera::stream {

// A factor of a node: its dim in each operand; -1 where an operand has none.
struct DimLink {
  std::vector<int> in, out;
  bool is_reduced = false;  // parts of the results combine by the node's kind
};
// The factors along which the op may run part by part. Others are left out: those that the rule keeps
// whole, those that share a dim with another factor, and those along which a kernel looks at positions.
std::vector<DimLink> links_of(const Node&);
// A product of a sparse matrix in memory with vectors.
bool is_sparse_product(const Node&);
// The number of the index array of a scatter that addresses this dim of its result: it counts from the dim's
// start. -1: none, or another op.
int index_of_scatter(const Node&, int dim);
// Whether a part along this dim of the result follows from those before: running sums, and scatters, which
// count where their part begins.
bool is_in_sequence(const Node&, int dim);
// The k largest along the last dim: those of parts are merged.
bool is_top_k(const Node&);
// By what the parts of a node's results combine. InternalError for a node without a rule.
ReduceKind parts_combine_by(const Node&);

class DimClasses {
 public:
  explicit DimClasses(const Graph&);
  // The same links, of which those of these nodes alone join dims.
  DimClasses joined_by(const std::vector<NodePtr>& nodes) const;
  const std::vector<DimLink>& links(const Node& node) const { return links_.at(&node); }
  int of(const Node&, int output, int dim) const;
  // Whether the value is in the graph.
  bool knows(const Array& value) const { return first_.contains({value.node().get(), value.output()}); }
  // The value's dim in the class: -1 if it has none, -2 if several.
  int dim_in(int dim_class, const Array& value) const {
    return dim_in(dim_class, *value.node(), value.output());
  }
  int dim_in(int dim_class, const Node&, int output) const;

 private:
  using Value = std::pair<const Node*, int>;
  int number(const Node&, int output, int dim) const;
  int root(int number) const;
  void add(const Node&);
  void join(const Node&);

  std::map<const Node*, std::vector<DimLink>> links_;
  std::map<Value, int> first_;  // the number of a value's dim 0
  std::vector<int> parent_;
};

}  // namespace tessera::stream
