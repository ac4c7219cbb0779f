#include "viz/picture.hpp"

#include <algorithm>
#include <numeric>

#include "viz/labels.hpp"

namespace tessera::viz {
namespace {

std::vector<int> split_dims(const BlockGrid& grid) {
  std::vector<int> dims;
  for (int d = 0; d < grid.shape.ndim(); ++d) {
    if (grid.blocks_along(d) > 1) dims.push_back(d);
  }
  return dims;
}

// Selects the dims to draw, of three or more: the last two split ones, completed by trailing dims if only
// one is split.
void choose_drawn_dims(Picture& picture) {
  const int ndim = picture.grid.shape.ndim();
  picture.row_dim = ndim - 2;
  picture.column_dim = ndim - 1;
  if (ndim <= 2) {
    picture.row_dim = std::max(picture.row_dim, -1);
    return;
  }
  std::vector<int> split = split_dims(picture.grid);
  if (split.size() >= 2) picture.column_dim = split.back(), split.pop_back();
  if (!split.empty() && split.back() != picture.column_dim) picture.row_dim = split.back();
}

std::string describe(const BlockGrid& grid, int dim) {
  return "dim " + std::to_string(dim) + " (" + std::to_string(grid.shape[dim]) + " in " +
         plural(grid.blocks_along(dim), "block") + ")";
}

std::string join(const std::vector<std::string>& parts, const char* separator) {
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : separator) + part;
  return all;
}

// Shape (8, 6, 4): down dim 0 (8 in 4 blocks), across dim 2 (4 in 2 blocks); dim 1 (6) is unsplit
std::string introduce(const Picture& picture) {
  const BlockGrid& grid = picture.grid;
  if (grid.shape.ndim() == 0) return "Shape (): one element, on every device";
  if (grid.shape.ndim() <= 2) return "";
  std::vector<std::string> unfolded, whole;
  for (int d = 0; d < grid.shape.ndim(); ++d) {
    if (d == picture.row_dim || d == picture.column_dim) continue;
    if (grid.blocks_along(d) > 1)
      unfolded.push_back(describe(grid, d));
    else
      whole.push_back("dim " + std::to_string(d) + " (" + std::to_string(grid.shape[d]) + ")");
  }
  std::string text = "Shape " + to_string(grid.shape) + ": down " + describe(grid, picture.row_dim) +
                     ", across " + describe(grid, picture.column_dim);
  if (!unfolded.empty()) text += "; a panel per block of " + join(unfolded, " and ");
  if (!whole.empty()) text += "; " + join(whole, " and ") + (whole.size() == 1 ? " is whole" : " are whole");
  return text;
}

std::string gap_text(const std::vector<int>& numbers, int dim, int count) {
  auto place = std::find(numbers.begin(), numbers.end(), gap);
  if (place == numbers.end()) return "";
  return "blocks " + std::to_string(place[-1] + 1) + "-" + std::to_string(place[1] - 1) + " of " +
         std::to_string(count) + " along dim " + std::to_string(dim);
}

void make_panels(Picture& picture) {
  const BlockGrid& grid = picture.grid;
  const int row_count = picture.row_dim < 0 ? 1 : grid.blocks_along(picture.row_dim);
  const int column_count = picture.column_dim < 0 ? 1 : grid.blocks_along(picture.column_dim);
  const int panel_count = grid.blocks() / (row_count * column_count);
  const bool is_cut = grid.blocks() > most_blocks;
  const std::vector<int> rows =
      is_cut ? first_and_last(row_count, most_rows(panel_count)) : all_numbers(row_count);
  const std::vector<int> columns =
      is_cut ? first_and_last(column_count, most_columns) : all_numbers(column_count);
  const std::vector<int> shown = is_cut ? first_and_last(panel_count, most_panels) : all_numbers(panel_count);
  for (int panel : shown) {
    if (panel == gap) continue;
    Panel made{std::vector<int>(grid.ranges.size(), 0), rows, columns};
    for (int d = grid.shape.ndim() - 1, rest = panel; d >= 0; --d) {
      if (d == picture.row_dim || d == picture.column_dim) continue;
      made.numbers[d] = rest % grid.blocks_along(d);
      rest /= grid.blocks_along(d);
    }
    picture.panels.push_back(std::move(made));
  }

  std::vector<std::string> left_out;
  if (std::string text = gap_text(rows, picture.row_dim, row_count); !text.empty()) left_out.push_back(text);
  if (std::string text = gap_text(columns, picture.column_dim, column_count); !text.empty())
    left_out.push_back(text);
  if (picture.panels.size() < static_cast<std::size_t>(panel_count)) {
    left_out.push_back(plural(panel_count - static_cast<int>(picture.panels.size()), "panel") + " of " +
                       std::to_string(panel_count));
  }
  if (left_out.empty()) return;
  auto slots = [](const std::vector<int>& numbers) {
    return numbers.size() - std::count(numbers.begin(), numbers.end(), gap);
  };
  picture.notes.push_back(std::to_string(slots(rows) * slots(columns) * picture.panels.size()) + " of " +
                          std::to_string(grid.blocks()) + " blocks shown; left out: " + join(left_out, ", "));
}

// JAX's colours in reading order; skips colours that would make a block look like its left or upper
// neighbour.
void colour_blocks(Picture& picture) {
  picture.colours.assign(picture.grid.blocks(), -1);
  int cells = 0;
  auto each_cell = [&](auto visit) {
    for (const Panel& panel : picture.panels) {
      for (int r = 0; r < static_cast<int>(panel.rows.size()); ++r) {
        for (int c = 0; c < static_cast<int>(panel.columns.size()); ++c) {
          if (int block = picture.block(panel, r, c); block != gap) visit(panel, r, c, block);
        }
      }
    }
  };
  auto colour_at = [&](const Panel& panel, int r, int c) {
    int block = r < 0 || c < 0 ? gap : picture.block(panel, r, c);
    return block == gap ? -1 : picture.colours[block];
  };
  each_cell([&](const Panel&, int, int, int) { ++cells; });
  int k = 0;
  each_cell([&](const Panel& panel, int r, int c, int block) {
    int colour = jax_colour(k++, cells), left = colour_at(panel, r, c - 1),
        above = colour_at(panel, r - 1, c);
    while (colour == left || colour == above) colour = (colour + 7) % palette_size;
    picture.colours[block] = colour;
  });
}

}  // namespace

int Picture::block(const Panel& panel, int row, int column) const {
  if (panel.rows[row] == gap || panel.columns[column] == gap) return gap;
  std::vector<int> numbers = panel.numbers;
  if (row_dim >= 0) numbers[row_dim] = panel.rows[row];
  if (column_dim >= 0) numbers[column_dim] = panel.columns[column];
  return grid.block_at(numbers);
}

std::int64_t Picture::row_size(int row_block) const {
  return row_dim < 0 ? 1 : grid.ranges[row_dim][row_block].size();
}
std::int64_t Picture::column_size(int column_block) const {
  return column_dim < 0 ? 1 : grid.ranges[column_dim][column_block].size();
}

bool Picture::is_uneven() const {
  for (int d = 0; d < grid.shape.ndim(); ++d) {
    if (!grid.is_even(d)) return true;
  }
  return false;
}

std::string Picture::place_of(const Panel& panel) const {
  std::string text = "[";
  for (int d = 0; d < grid.shape.ndim(); ++d) {
    const std::vector<Range>& along = grid.ranges[d];
    const std::vector<int>* drawn = d == row_dim ? &panel.rows : d == column_dim ? &panel.columns : nullptr;
    auto is_block = [](int number) { return number != gap; };
    int first = panel.numbers[d], last = first;
    if (drawn) {
      first = *std::find_if(drawn->begin(), drawn->end(), is_block);
      last = *std::find_if(drawn->rbegin(), drawn->rend(), is_block);
    }
    std::int64_t start = along[first].start, stop = along[last].stop;
    bool is_whole = start == 0 && stop == grid.shape[d];
    text +=
        (d ? ", " : "") + (is_whole ? std::string(":") : std::to_string(start) + ":" + std::to_string(stop));
  }
  return text + "]";
}

std::vector<int> all_numbers(int count) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

std::vector<int> first_and_last(int count, int most) {
  std::vector<int> numbers = all_numbers(count);
  if (count <= most + 1) return numbers;
  int last = most / 3, first = most - last;
  numbers.erase(numbers.begin() + first + 1, numbers.end() - last);
  numbers[first] = gap;
  return numbers;
}

Picture picture_of(const Shape& shape, const Sharding& sharding, const char* call) {
  Picture picture;
  picture.grid = block_grid(shape, sharding, call);
  choose_drawn_dims(picture);
  make_panels(picture);
  colour_blocks(picture);
  picture.intro = introduce(picture);
  return picture;
}

std::vector<Panel> cut_columns(const Panel& panel, const std::vector<int>& counts) {
  std::vector<Panel> parts;
  auto from = panel.columns.begin();
  for (int count : counts) {
    parts.push_back({panel.numbers, panel.rows, std::vector<int>(from, from + count)});
    from += count;
  }
  return parts;
}

}  // namespace tessera::viz
