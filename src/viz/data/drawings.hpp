// Pictures of numbers as file texts. Pure.
#pragma once
#include <tessera/viz.hpp>

#include <string>
#include <utility>
#include <vector>

#include "viz/data/grid.hpp"

namespace tessera::viz {

// `rows` and `columns` are the extents of the array that the grid represents: shown on the axes.
std::string image_svg(const DataGrid&, const ValueRange&, const ImageOptions&, std::int64_t rows,
                      std::int64_t columns);

using Points = std::vector<std::pair<double, double>>;  // a point that is not finite is a gap
struct DrawnCurve {
  std::string label;
  Points points;
};
std::string plot_svg(const std::vector<DrawnCurve>&, const PlotOptions&);
std::string histogram_svg(const std::vector<std::int64_t>& counts, const ValueRange&, const PlotOptions&);

// Without colours two characters per number; with colours one character for two rows.
std::string shaded_text(const DataGrid&, const ValueRange&, const std::string& colormap, bool colour);
// One column per number, in eighths of a line.
std::string bars_text(const std::vector<double>&, const ValueRange&, int lines);

}  // namespace tessera::viz
