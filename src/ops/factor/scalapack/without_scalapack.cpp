// Compiled instead of scalapack.cpp if the build found no ScaLAPACK.
#include "ops/factor/scalapack/scalapack.hpp"

namespace tessera::factor {
namespace {

// The caller adds the name of the function.
[[noreturn]] void refuse() {
  throw LinAlgError(
      "a matrix split over ranks needs ScaLAPACK, which this build of tessera was made without; "
      "put the matrix on one rank or replicate it (device_put), or build with ScaLAPACK "
      "(-D TESSERA_SCALAPACK=ON says what is missing)");
}

}  // namespace

template <class T> bool svd(const Grid&, GridMatrix<T>&, GridMatrix<T>*, real_of<T>*, GridMatrix<T>*) {
  refuse();
}

#define TESSERA_INSTANTIATE(T) \
  template bool svd<T>(const Grid&, GridMatrix<T>&, GridMatrix<T>*, real_of<T>*, GridMatrix<T>*);
TESSERA_INSTANTIATE(float)
TESSERA_INSTANTIATE(double) TESSERA_INSTANTIATE(kernels::c32) TESSERA_INSTANTIATE(kernels::c64)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::factor
