// The kernel of an elementwise op, for the fuser and the executor.
#pragma once
#include <tessera/dtype.hpp>

namespace tessera {

namespace kernels {
class Map;
}

struct ElementwiseRow {
  const kernels::Map* kernel;  // nullptr: a cast to the output's dtype
  int dtype_input = 0;         // the input whose dtype selects the kernel's function (where: 1)
  bool is_broadcast = false;   // no arithmetic: the operand under another shape (broadcast_to)
};

}  // namespace tessera
