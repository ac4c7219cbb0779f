// The character layout of a picture: column widths, row heights, and the position of each label in its cell.
#pragma once
#include <string>
#include <vector>

#include <tessera/visualize.hpp>

#include "viz/picture.hpp"

namespace tessera::viz {

struct TextCell {
  int block = gap;
  std::vector<std::string> label;  // lines
  int left = 0, right = 0, top = 0,
      bottom = 0;  // blanks around the label; the remainder is divided evenly
};

struct TextPanel {
  std::string heading;               // the panel's position in the array; empty if it shows all of it
  std::vector<int> widths, heights;  // widths of columns and heights of rows, without frame lines
  std::vector<TextCell> cells;       // row-major
};

struct TextLayout {
  std::vector<std::string> intro;  // lines above
  std::vector<TextPanel> panels;
  std::vector<std::string> notes;  // lines below: the picture's notes, and explanations of labels
};

enum class Form { framed, coloured };
TextLayout lay_out(const Picture&, const debug::VisualizeOptions&, Form);

// Sizes >= needs that are as close as possible to proportional to the weights and add up to max(total, sum of
// needs).
std::vector<int> share_out(int total, const std::vector<double>& weights, const std::vector<int>& needs);

// The number of items per line if items of these widths, with a frame line of `separator` characters around
// each, are set in lines of at most `most` characters: as few lines as possible, evenly filled.
std::vector<int> break_lines(const std::vector<int>& widths, int separator, int most);

}  // namespace tessera::viz
