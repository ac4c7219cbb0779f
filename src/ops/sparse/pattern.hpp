// The entries of a sparse matrix, and the exchange of its products: computed once, when the matrix is made
// (src/sparse), and read by the ops of this folder.
//
//   rank 1 of 3, rows and columns 4..7            own run        others' run
//   row 4:  columns 3 4 5                         0 1            0          others: 3 (rank 0), 8 (rank 2)
//   row 7:  columns 6 7 8                         2 3            1
#pragma once
#include <tessera/array.hpp>
#include <tessera/sharding.hpp>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/sparse/csr.hpp"

namespace tessera {

// This rank's part. Ranks are numbered along the axes that split the rows.
struct SparsePlan {
  std::vector<std::int64_t> begin{0}, split;
  std::vector<std::int32_t> column;
  std::vector<std::int64_t> receiving;  // the rows with entries of others' columns, ascending
  struct Peer {
    int device = 0;
    std::vector<std::int32_t> given;  // indices of own elements that are sent to the peer
    std::int64_t taken = 0;           // elements received from the peer, contiguous among the others
  };
  std::vector<Peer> peers;           // in the order of their blocks
  std::vector<std::int64_t> others;  // the columns received from other ranks, ascending
  std::int64_t given = 0;

  kernels::CsrRows view() const {
    return {static_cast<std::int64_t>(split.size()), begin.data(), split.data(), column.data(), receiving};
  }
  std::int64_t entries() const { return static_cast<std::int64_t>(column.size()); }
  std::int64_t taken() const { return static_cast<std::int64_t>(others.size()); }
};

// All ranks have the same values.
struct SparsePattern {
  explicit SparsePattern(Sharding split) : sharding(std::move(split)) {}
  std::int64_t rows = 0, columns = 0, entries = 0;
  std::int64_t width = 0;                       // the most entries that one rank holds
  std::int64_t most_taken = 0, most_given = 0;  // elements that the busiest rank takes and gives
  std::uint64_t digest = 0;                     // hash of all entries' positions on all ranks
  Sharding sharding;                            // sharding of a vector with an element per row
  SparsePlan plan;

  std::vector<int> axes() const { return sharding.dim_axes(1)[0]; }
};
using PatternPtr = std::shared_ptr<const SparsePattern>;

// y = a x, x = a^T y and values = (y x^T at the entries), for vectors and for columns (n, ...). The values
// are (parts, width), zeros after each rank's entries.
Array sparse_dot(const PatternPtr&, const Array& values, const Array& x);
Array sparse_dot_transposed(const PatternPtr&, const Array& values, const Array& y);
Array sparse_sample(const PatternPtr&, const Array& y, const Array& x);
// Incomplete LU factors of each rank's diagonal block, in the layout of the values; the solve with them.
Array sparse_incomplete_lu(const PatternPtr&, const Array& values);
Array sparse_solve_lu(const PatternPtr&, const Array& factors, const Array& y, bool transposed = false);

}  // namespace tessera
