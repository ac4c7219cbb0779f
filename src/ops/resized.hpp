// Ops whose params hold the shape of their result.
#pragma once
#include "graph/op.hpp"

namespace tessera {

// Copies the params with another result shape; nullptr for ops whose params hold none.
ParamsPtr params_with_shape(const OpDef&, const Params&, const Shape&);
// The same for constants (full) only.
ParamsPtr constant_with_shape(const OpDef&, const Params&, const Shape&);

}  // namespace tessera
