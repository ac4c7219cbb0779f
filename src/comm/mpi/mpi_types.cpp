#include "comm/mpi/mpi_types.hpp"

#include <tessera/error.hpp>

#include <array>

#include "base/session.hpp"
#include "comm/mpi/mpi_call.hpp"

namespace tessera::comm {
namespace {

Dtype dtype_of_mpi(MPI_Datatype type) {
  for (int code = 0; code < dtype_count; ++code)
    if (!is_bool(Dtype{code}) && mpi_type(Dtype{code}) == type) return Dtype{code};
  return float64;
}

template <ReduceKind kind> void combine_for_mpi(void* in, void* inout, int* count, MPI_Datatype* type) {
  combine(kind, dtype_of_mpi(*type), in, inout, inout, *count);
}

// Created at first use, freed before MPI ends.
struct OwnOps {
  std::array<MPI_Op, 16> of_kind;

  OwnOps() { of_kind.fill(MPI_OP_NULL); }
  OwnOps(const OwnOps&) = delete;
  OwnOps& operator=(const OwnOps&) = delete;
  ~OwnOps() {
    int finalized = 0;
    mpi::Finalized(&finalized);
    for (auto& op : of_kind)
      if (!finalized && op != MPI_OP_NULL) mpi::Op_free(&op);
  }
};

template <ReduceKind kind> MPI_Op own_op() {
  MPI_Op& op = state<OwnOps>().of_kind.at(static_cast<std::size_t>(kind));
  if (op == MPI_OP_NULL) check(mpi::Op_create(combine_for_mpi<kind>, 1, &op), "MPI_Op_create", world());
  return op;
}

// Open MPI's vector code (op/avx in 4.1) adds some 8- and 16-bit integers with saturation: 127 + 127 is 127
// in some places and -2 in others. It does not support halves.
bool adds_otherwise(Dtype dtype) { return (is_integer(dtype) && itemsize(dtype) < 4) || is_half(dtype); }

}  // namespace

MPI_Datatype mpi_type(Dtype dtype) {
  switch (dtype.code) {
    case bool_.code:
    case uint8.code: return MPI_UINT8_T;
    case int8.code: return MPI_INT8_T;
    case int16.code: return MPI_INT16_T;
    case int32.code: return MPI_INT32_T;
    case int64.code: return MPI_INT64_T;
    case uint16.code: return MPI_UINT16_T;
    case uint32.code: return MPI_UINT32_T;
    case uint64.code: return MPI_UINT64_T;
    case float32.code: return MPI_FLOAT;
    case float64.code: return MPI_DOUBLE;
    case complex64.code: return MPI_C_FLOAT_COMPLEX;
    case complex128.code: return MPI_C_DOUBLE_COMPLEX;
    case bfloat16.code: return MPI_SHORT;  // two bytes, used by no other dtype: own operations recognize it
    case float16.code: return MPI_UNSIGNED_SHORT;
    default: throw InternalError("comm: dtype code " + std::to_string(dtype.code) + " has no MPI type");
  }
}

MPI_Op mpi_op(ReduceKind kind, Dtype dtype) {
  if (is_bool(dtype)) {  // bytes 0 and 1
    switch (kind) {
      case ReduceKind::sum:
      case ReduceKind::max:
      case ReduceKind::any:
      case ReduceKind::bit_or: return MPI_BOR;
      case ReduceKind::bit_xor: return MPI_BXOR;
      default: return MPI_BAND;
    }
  }
  switch (kind) {
    case ReduceKind::sum: return adds_otherwise(dtype) ? own_op<ReduceKind::sum>() : MPI_SUM;
    case ReduceKind::prod: return adds_otherwise(dtype) ? own_op<ReduceKind::prod>() : MPI_PROD;
    case ReduceKind::max: return is_floating(dtype) ? own_op<ReduceKind::max>() : MPI_MAX;
    case ReduceKind::min: return is_floating(dtype) ? own_op<ReduceKind::min>() : MPI_MIN;
    case ReduceKind::all: return MPI_LAND;
    case ReduceKind::any: return MPI_LOR;
    case ReduceKind::bit_and: return MPI_BAND;
    case ReduceKind::bit_or: return MPI_BOR;
    case ReduceKind::bit_xor: return MPI_BXOR;
    default: return MPI_OP_NULL;
  }
}

}  // namespace tessera::comm
