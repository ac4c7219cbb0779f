// The kernel of an elementwise op, for the fuser and the executor.
#pragma once
#include <tessera/dtype.hpp>

namespace tessera {

namespace kernels {
class Map;
}
struct OpDef;

struct ElementwiseRow {
  const kernels::Map* kernel;  // nullptr: a cast to the output's dtype
  int dtype_input = 0;         // the input whose dtype selects the kernel's function (where: 1)
  bool is_broadcast = false;   // no arithmetic: the operand in another shape (broadcast_to)
};

// Whether the op computes that kernel, element by element: computes(op, kernels::map<"add">).
bool computes(const OpDef&, const kernels::Map&);

}  // namespace tessera
