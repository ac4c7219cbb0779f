#include "kernels/visit.hpp"

#include <tessera/error.hpp>

namespace tessera::kernels {

void no_arithmetic_in(Dtype dtype) {
  throw InternalError("kernels: there is no arithmetic in " + name(dtype) + "; widen it to float32 first");
}

}  // namespace tessera::kernels
