// tessera's dtypes and reductions as MPI's.
#pragma once
#include <mpi.h>

#include "comm/combine.hpp"

namespace tessera::comm {

MPI_Datatype mpi_type(Dtype);
// MPI's own operation where its meaning is NumPy's; for max and min of floats one that keeps NaN.
MPI_Op mpi_op(ReduceKind, Dtype);

}  // namespace tessera::comm
