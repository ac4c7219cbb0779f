// Pictures of numbers as texts of files: pure.
#pragma once
#include <tessera/viz.hpp>

#include <string>
#include <utility>
#include <vector>

#include "viz/data/grid.hpp"

namespace tessera::viz {

// `rows` and `columns` are the extents of the array that the grid stands for: what the axes show.
std::string image_svg(const Grid&, const ValueRange&, const ImageOptions&, std::int64_t rows,
                      std::int64_t columns);

using Points = std::vector<std::pair<double, double>>;  // not finite: a gap
struct DrawnCurve {
  std::string label;
  Points points;
};
std::string plot_svg(const std::vector<DrawnCurve>&, const PlotOptions&);
std::string histogram_svg(const std::vector<std::int64_t>& counts, const ValueRange&, const PlotOptions&);

// Two characters per number where there are no colours, one for two rows where there are.
std::string shaded_text(const Grid&, const ValueRange&, const std::string& colormap, bool colour);
// A column per number, in eighths of a line.
std::string bars_text(const std::vector<double>&, const ValueRange&, int lines);

}  // namespace tessera::viz
