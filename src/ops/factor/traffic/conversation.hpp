// Bytes that the ranks of one factorization receive from each other: forecast from layouts alone, for
// explain, and counted where they are sent, for CommStats.
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
struct Heard {
  std::int64_t bytes = 0, calls = 0;
  void add(std::int64_t more) { bytes += more, ++calls; }
};
// The bytes that one rank receives while a matrix is factored.
struct Received {
  Heard dealt;      // between the tiles and the block-cyclic layout
  Heard broadcast;  // panels, and rows that ranks show each other
  Heard reduced;
  std::int64_t bytes() const { return dealt.bytes + broadcast.bytes + reduced.bytes; }
};

// One rank of a grid, and a matrix that lies on it block-cyclically.
struct Listener {
  BlockCyclic layout;
  int rank = 0;
  std::int64_t itemsize = 0;
  int row() const { return layout.row_of(rank); }
  int column() const { return layout.column_of(rank); }
};
// The algorithms of grid_algorithms.hpp. Of a grid with several rows the exchanges of rows depend on the
// values: as many are taken to cross as when every pivot lies below its panel.
void hear_lu(Received&, const Listener&, std::int64_t extra_columns, bool apply_left);
void hear_cholesky(Received&, const Listener&);
void hear_qr(Received&, const Listener&);
void hear_substitution(Received&, const Listener&, const BlockCyclic& right, bool few, bool lower);
// The traffic of ScaLAPACK cannot be seen: estimated as each panel once along the rows, as in an LU.
void hear_scalapack(Received&, const Listener&);
void count_scalapack(const Listener&);

// ---- where it is sent: counted by what this rank receives ----

namespace counted {
void broadcast(const comm::Communicator&, void* data, std::int64_t bytes, int root);
comm::Pending start_broadcast(const comm::Communicator&, void* data, std::int64_t bytes, int root);
void all_reduce(const comm::Communicator&, ReduceKind, Dtype, void* data, std::int64_t count);
void all_gather(const comm::Communicator&, const void* in, std::int64_t bytes, void* out);
void all_gather_v(const comm::Communicator&, const void* in, std::int64_t bytes, void* out,
                  std::span<const std::int64_t> bytes_of, std::span<const std::int64_t> offset_of);
}  // namespace counted

}  // namespace tessera::factor
