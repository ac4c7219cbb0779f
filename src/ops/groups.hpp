// Groups of ranks that share one line of blocks, for kernels that communicate along a split dim.
#pragma once
#include "comm/mpi/communicator.hpp"
#include "mesh/axes.hpp"

namespace tessera {

// The devices whose blocks differ from this rank's only along `dim`, in the order of their blocks. Collective
// over them at first use.
inline const comm::Communicator& group_of_dim(const Sharding& layout, int dim, int ndim, int me) {
  return comm::group(group_along(layout.mesh(), layout.dim_axes(ndim)[dim], me));
}

}  // namespace tessera
