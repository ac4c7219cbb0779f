// Ops whose params hold the shape of their result.
#pragma once
#include "graph/op.hpp"

namespace tessera {

// The params with another shape of the result; nullptr for ops whose params hold none.
ParamsPtr params_with_shape(const OpDef&, const Params&, const Shape&);
// The same of constants (full) alone.
ParamsPtr constant_with_shape(const OpDef&, const Params&, const Shape&);

}  // namespace tessera
