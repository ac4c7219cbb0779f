// The kernel and dims of a reduction, for the fuser.
#pragma once
#include <optional>
#include <vector>

#include "graph/op.hpp"
#include "types/reduce_kind.hpp"

namespace tessera {

struct ReduceParams {
  std::vector<int> dims;    // ascending
  bool has_leaves = false;  // of a tree (kernels/reduce/tree.hpp); a part of the line keeps what the line has
  template <class V> void fields(V&& visit) const {
    visit("dims", dims);
    if (has_leaves) visit("has_leaves", has_leaves);
  }
};

struct Reduction {
  ReduceKind kind;
  std::vector<int> dims;
  std::optional<TreePart> tree = {};
};
// The reduction of an operand of shape `whole`. nullopt unless the record is one of sum, prod, max, min, any,
// all, or a part of a tree that reads the operand.
std::optional<Reduction> reduction_of(const OpDef&, const Params&, const Shape& whole);

}  // namespace tessera
