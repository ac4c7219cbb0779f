// tessera's dtypes and reductions as MPI's.
#pragma once
#include "comm/mpi/mpi_api.hpp"

#include "comm/collectives/combine.hpp"

namespace tessera::comm {

MPI_Datatype mpi_type(Dtype);
// MPI's own operation where its meaning is NumPy's, else one made of combine(): max and min of floats keep
// NaN, small integers wrap.
MPI_Op mpi_op(ReduceKind, Dtype);

}  // namespace tessera::comm
