// The kernel of a reduction and its dims, for the fuser.
#pragma once
#include <optional>
#include <vector>

#include "graph/op.hpp"

namespace tessera {

struct ReduceParams {
  std::vector<int> dims;  // ascending
  template <class V> void fields(V&& visit) const { visit("dims", dims); }
};

struct Reduction {
  ReduceKind kind;
  std::vector<int> dims;
};
// nullopt for a record that is not one of sum, prod, max, min, any, all.
std::optional<Reduction> reduction_of(const OpDef&, const Params&);

}  // namespace tessera
