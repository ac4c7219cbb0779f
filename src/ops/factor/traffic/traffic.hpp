// Bytes that the ranks of one factorization receive: predicted from layouts alone, for explain, and counted
// at the calls, for CommStats.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "comm/collectives/pending.hpp"
#include "graph/op.hpp"
#include "ops/factor/block_cyclic.hpp"

namespace tessera::factor {

struct Tiles;  // grid.hpp

// The bytes of one kind of collective.
struct CollectiveBytes {
  std::int64_t bytes = 0, calls = 0;
  void add(std::int64_t more) { bytes += more, ++calls; }
};
// The bytes that one rank receives while a matrix is factored.
struct ReceivedBytes {
  CollectiveBytes redistributed;  // between the tiles and the block-cyclic layout
  CollectiveBytes broadcast;      // panels, and rows that ranks exchange
  CollectiveBytes reduced;
  std::int64_t bytes() const { return redistributed.bytes + broadcast.bytes + reduced.bytes; }
};

// One rank of a grid, and a block-cyclic matrix on that grid.
struct GridRank {
  BlockCyclic layout;
  int rank = 0;
  std::int64_t itemsize = 0;
  int row() const { return layout.row_of(rank); }
  int column() const { return layout.column_of(rank); }
};
// The algorithms of grid_algorithms.hpp. On a grid with several rows the row exchanges depend on the values:
// the prediction assumes that every pivot is below its panel.
void predict_lu(ReceivedBytes&, const GridRank&, std::int64_t extra_columns, bool apply_left);
void predict_cholesky(ReceivedBytes&, const GridRank&);
void predict_qr(ReceivedBytes&, const GridRank&);
void predict_substitution(ReceivedBytes&, const GridRank&, const BlockCyclic& right, bool few, bool lower);

// ---- at the calls: counted by the bytes that this rank receives ----

namespace counted {
void broadcast(const comm::Communicator&, void* data, std::int64_t bytes, int root);
comm::Pending start_broadcast(const comm::Communicator&, void* data, std::int64_t bytes, int root);
void all_reduce(const comm::Communicator&, ReduceKind, Dtype, void* data, std::int64_t count);
void all_gather(const comm::Communicator&, const void* in, std::int64_t bytes, void* out);
void all_gather_v(const comm::Communicator&, const void* in, std::int64_t bytes, void* out,
                  std::span<const std::int64_t> bytes_of, std::span<const std::int64_t> offset_of);
}  // namespace counted

}  // namespace tessera::factor
