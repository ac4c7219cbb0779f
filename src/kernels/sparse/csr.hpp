// Products with the rows of a sparse matrix that one rank holds. Entries of a row form two runs: those whose
// column is among the rank's own elements of the vector, then those whose column is received.
//
//   row r:   begin[r] ── own columns ── split[r] ── columns of others ── begin[r + 1]
#pragma once
#include <tessera/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera::kernels {

struct CsrRows {
  std::int64_t rows = 0;
  const std::int64_t *begin = nullptr, *split = nullptr;
  const std::int32_t* column = nullptr;          // of each entry, within its part
  std::span<const std::int64_t> receiving = {};  // the rows with a received column, ascending
};
enum class CsrPart { own, others };
// Rows whose columns are all own ones, which need no message, and the rows with a received column.
enum class RowsWith { own_columns, received_columns };

// Vectors are (elements, width), row-major; float32, float64 and their complex types. For own columns y[r] =
// the sum of value * x[column] over the entries of row r; for received columns y[r] += the sum.
void csr_multiply(Dtype, CsrPart, const CsrRows&, const void* values, const void* x, std::int64_t width,
                  void* y);
// y[r] = the sum over the entries of row r in the order of their global columns: the received columns with an
// index below `before`, then the own columns, then the remaining received ones. Other rows are not written.
void csr_multiply_in_order(Dtype, const CsrRows&, RowsWith, const void* values, const void* own,
                           const void* others, std::int64_t before, std::int64_t width, void* y);
// x[column] += value * y[r].
void csr_multiply_transposed(Dtype, CsrPart, const CsrRows&, const void* values, const void* y,
                             std::int64_t width, void* x);
// values[entry] = sum over the width of y[r] * x[column].
void csr_sample(Dtype, CsrPart, const CsrRows&, const void* y, const void* x, std::int64_t width,
                void* values);

// Incomplete LU, without fill or reordering, of the square part of own columns: the factors overwrite the
// entries. Returns the first row without a pivot, or -1. Entries of received columns are not changed.
std::int64_t csr_incomplete_lu(Dtype, const CsrRows&, void* values);
// x = (l u)^-1 y with those factors, or (l u)^-T y.
void csr_solve_lu(Dtype, const CsrRows&, const void* factors, const void* y, std::int64_t width, void* x,
                  bool transposed = false);

}  // namespace tessera::kernels
