// The content of a sharding's picture, before anyone decides how wide a character is: which dimensions go
// down and across, which panels, which blocks are left out, and the colour of each block. Text, HTML and SVG
// draw the same Picture.
#pragma once
#include <string>
#include <vector>

#include "viz/blocks.hpp"
#include "viz/palette.hpp"

namespace tessera::viz {

inline constexpr int gap = -1;  // stands for the block rows or columns that are left out

struct Panel {
  std::vector<int> numbers;  // per dimension: the block that the panel shows; 0 along the drawn dimensions
  std::vector<int> rows;     // block numbers along row_dim, or gap
  std::vector<int> columns;  // block numbers along column_dim, or gap
};

struct Picture {
  BlockGrid grid;
  int row_dim = -1, column_dim = -1;  // -1: the array has no such dimension
  std::vector<Panel> panels;
  std::vector<int> colours;        // [block]: palette entry; -1 for a block that is left out
  std::string intro;               // which dimensions are drawn; empty where that is obvious
  std::vector<std::string> notes;  // what is left out

  int block(const Panel&, int row,
            int column) const;  // row and column count slots; gap if either slot is one
  std::int64_t rows_extent() const { return row_dim < 0 ? 1 : grid.shape[row_dim]; }
  std::int64_t columns_extent() const { return column_dim < 0 ? 1 : grid.shape[column_dim]; }
  std::int64_t row_size(int row_block) const;  // extent of a block along row_dim
  std::int64_t column_size(int column_block) const;
  bool rows_even() const { return row_dim < 0 || grid.is_even(row_dim); }
  bool columns_even() const { return column_dim < 0 || grid.is_even(column_dim); }
  bool is_uneven() const;  // along any dimension: the cells then say their sizes
  std::string place_of(
      const Panel&) const;  // [0:4, :, 2:6]; the drawn dimensions are cut to what the panel shows
};

// Pictures with more parts than most_blocks show the first and last few along each direction.
inline constexpr int most_blocks = 256, most_columns = 7, most_panels = 4;
inline constexpr int most_rows(int panels) { return panels == 1 ? 15 : 7; }
std::vector<int> all_numbers(int count);               // 0, 1, ..., count - 1
std::vector<int> first_and_last(int count, int most);  // 0 1 2 3 4 gap 98 99

Picture picture_of(const Shape&, const Sharding&, const char* call);

// The panel cut into panels of consecutive columns, of which there are `counts` each.
std::vector<Panel> cut_columns(const Panel&, const std::vector<int>& counts);

}  // namespace tessera::viz
