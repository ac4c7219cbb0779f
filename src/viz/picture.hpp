// The content of a sharding's picture, independent of character widths: which dims go down and across, which
// panels there are, which blocks are left out, and the colour of each block. Text, HTML and SVG draw the same
// Picture.
#pragma once
#include <string>
#include <vector>

#include "viz/blocks.hpp"
#include "viz/palette.hpp"

namespace tessera::viz {

inline constexpr int gap = -1;  // marks omitted block rows or columns

struct Panel {
  std::vector<int> numbers;  // per dim: the block that the panel shows; 0 along the drawn dims
  std::vector<int> rows;     // block numbers along row_dim, or gap
  std::vector<int> columns;  // block numbers along column_dim, or gap
};

struct Picture {
  BlockGrid grid;
  int row_dim = -1, column_dim = -1;  // -1: no such dim
  std::vector<Panel> panels;
  std::vector<int> colours;        // [block]: palette entry; -1 for an omitted block
  std::string intro;               // text that says which dims are drawn; empty if obvious
  std::vector<std::string> notes;  // on omitted parts

  int block(const Panel&, int row,
            int column) const;  // row and column are slot indices; gap if either slot is one
  std::int64_t rows_extent() const { return row_dim < 0 ? 1 : grid.shape[row_dim]; }
  std::int64_t columns_extent() const { return column_dim < 0 ? 1 : grid.shape[column_dim]; }
  std::int64_t row_size(int row_block) const;  // extent of a block along row_dim
  std::int64_t column_size(int column_block) const;
  bool rows_even() const { return row_dim < 0 || grid.is_even(row_dim); }
  bool columns_even() const { return column_dim < 0 || grid.is_even(column_dim); }
  bool is_uneven() const;  // along any dim: the cells then show their sizes
  std::string place_of(
      const Panel&) const;  // [0:4, :, 2:6]; the drawn dimensions are restricted to the panel's range
};

// Larger pictures show the first and last few parts along each direction.
inline constexpr int most_blocks = 256, most_columns = 7, most_panels = 4;
inline constexpr int most_rows(int panels) { return panels == 1 ? 15 : 7; }
std::vector<int> all_numbers(int count);               // 0, 1, ..., count - 1
std::vector<int> first_and_last(int count, int most);  // 0 1 2 3 4 gap 98 99

Picture picture_of(const Shape&, const Sharding&, const char* call);

// Splits the panel into panels of consecutive columns, with these `counts` of columns.
std::vector<Panel> cut_columns(const Panel&, const std::vector<int>& counts);

}  // namespace tessera::viz
