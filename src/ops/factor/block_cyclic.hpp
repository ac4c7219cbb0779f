// The layout that keeps dense factorizations balanced while the matrix shrinks: blocks scattered round robin
// over a grid of ranks. Pure arithmetic; ScaLAPACK's layout with the first block on the first rank.
//
//   5 x 5 blocks on a 2 x 2 grid:   0 1 0 1 0
//                                   2 3 2 3 2
//                                   0 1 0 1 0      rank = grid row * grid columns + grid column
//                                   2 3 2 3 2
//                                   0 1 0 1 0
#pragma once
#include <tessera/shape.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::factor {

struct CyclicDim {
  std::int64_t extent = 0, block = 1;
  int parts = 1;
  int owner(std::int64_t index) const { return static_cast<int>(index / block % parts); }
  std::int64_t local(std::int64_t index) const { return index / (block * parts) * block + index % block; }
  std::int64_t global(int part, std::int64_t local) const {
    return (local / block * parts + part) * block + local % block;
  }
  std::int64_t count_below(int part,
                           std::int64_t index) const;  // the number of the part's indices smaller than index
  std::int64_t count(int part) const { return count_below(part, extent); }
};

struct BlockCyclic {
  CyclicDim rows, columns;
  int ranks() const { return rows.parts * columns.parts; }
  int row_of(int rank) const { return rank / columns.parts; }
  int column_of(int rank) const { return rank % columns.parts; }
};

// Indices that are consecutive both in a box and in the memory of a part.
struct CyclicRun {
  std::int64_t in_box, in_part, size;
};
std::vector<CyclicRun> runs_in(const CyclicDim&, int part, Range box);

// A rectangle of a matrix that some ranks hold as a dense tile.
struct Rectangle {
  Range rows, columns;
  bool is_empty() const { return rows.size() <= 0 || columns.size() <= 0; }
  friend bool operator==(const Rectangle&, const Rectangle&) = default;
};

// The intersection of a rectangle and a grid rank's part: every run of rows times every run of columns.
struct Overlap2d {
  std::vector<CyclicRun> rows, columns;
  std::int64_t elements() const;
};
Overlap2d overlap(const BlockCyclic&, int grid_rank, const Rectangle&);

// The rank that sends each distinct rectangle (replicas among them) to grid rank `receiver`: the receiver
// itself if it holds the rectangle, else one of the holders in turn.
std::vector<int> servers(std::span<const Rectangle> held, int receiver);

// The grid extents for `ranks` ranks: as square as possible with no more rows than columns, one row for few
// ranks.
struct GridShape {
  int rows = 1, columns = 1;
};
GridShape grid_for(int ranks);
// Whether a matrix in blocks stays in place for k right-hand sides and partial sums are sent
// (substitute_few).
inline bool is_few(GridShape grid, std::int64_t block, std::int64_t k) {
  return grid.columns == 1 || k < 2 * block;
}
// A block size that gives every rank of the grid several blocks, up to `most`.
std::int64_t block_for(std::int64_t extent, int parts, std::int64_t most);
// The largest worthwhile block: small matrices gain from narrow panels, large ones from deep products.
// Measured by apps/bench/linalg.cpp.
inline std::int64_t widest_block(std::int64_t extent) { return extent < 4096 ? 64 : 128; }

}  // namespace tessera::factor
