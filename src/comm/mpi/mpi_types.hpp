// tessera's dtypes and reductions as MPI datatypes and operations.
#pragma once
#include "comm/mpi/mpi_api.hpp"

#include "comm/collectives/combine.hpp"

namespace tessera::comm {

MPI_Datatype mpi_type(Dtype);
// MPI's own operation if it has NumPy's meaning, else one made of combine(): max and min of floats propagate
// NaN, small integers wrap.
MPI_Op mpi_op(ReduceKind, Dtype);

}  // namespace tessera::comm
