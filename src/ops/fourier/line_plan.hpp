// The distribution and the messages of a transform along a split dim. Pure functions.
#pragma once
#include <tessera/shape.hpp>

#include <cstdint>
#include <vector>

#include "ops/fourier/line.hpp"
#include "types/box.hpp"

namespace tessera {

enum class LineMethod { six_steps, chirp, collect };

// A rectangle of the matrix: rows x columns.
struct Patch {
  Range rows, columns;
  std::int64_t elements() const { return rows.size() * columns.size(); }
};

struct LinePlan {
  LineMethod method = LineMethod::six_steps;
  std::int64_t points = 0;                     // N
  std::int64_t in_points = 0, out_points = 0;  // points of the dim: N, or N / 2 + 1 on the halved side
  std::int64_t rows = 1, columns = 1;  // factors r and m of the length: r * m is N, or M for the chirp
  int ranks = 1;
  std::int64_t batch = 1;  // lines on each rank

  Range in_block(int rank) const { return block_range(in_points, ranks, rank); }
  Range out_block(int rank) const { return block_range(out_points, ranks, rank); }
  Range my_columns(int rank) const { return block_range(columns, ranks, rank); }
  Range my_rows(int rank) const { return block_range(rows, ranks, rank); }
};
LinePlan plan_line(const LineParams&, std::int64_t extent, std::int64_t batch, int ranks,
                   std::size_t complex_bytes);

// The points [block) of a line, written row by row into a matrix of `width` columns, that are in `columns`:
// at most three patches, the middle one of whole rows.
//
//   width 5, block [3:14), columns [1:4)      . . . # .
//                                             . # # # .
//                                             . # # # .
std::vector<Patch> patches(Range block, std::int64_t width, Range columns);

}  // namespace tessera
