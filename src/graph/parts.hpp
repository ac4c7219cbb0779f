// The dims along which a part of an op's operands gives the same part of its results (for reduced dims: terms
// of the results), because its kernel does not depend on an element's position in them.
//
// Elementwise ops and reinterpretations with a rule have it in all dims by their kind. Other ops say it
// beside their record:
//
//   const HasParts parts_of_dot(dot_op, Parts::all_dims);
#pragma once
#include "graph/op.hpp"

namespace tessera {

enum class Parts {
  none,            // its kernel reads positions, or the op is not registered
  unreduced_dims,  // dims of its rule that it does not reduce: indices refer to positions in the reduced ones
  beside_lines,    // all but the dim that it works along, which its params name
  all_dims,        // all dims of its rule
};

// Registers an op before main.
struct HasParts {
  HasParts(const OpDef& op, Parts);
};
Parts parts_of(const OpDef&);

}  // namespace tessera
