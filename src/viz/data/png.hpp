// Pixels as a PNG file.
#pragma once
#include <string>

#include "viz/data/colormap.hpp"
#include "viz/data/grid.hpp"

namespace tessera::viz {

// One pixel per number, `enlarge` in each direction; NaN is transparent. The bytes of the file, which are
// the same for the same pixels.
std::string png_of(const Grid&, const ValueRange&, const Colormap&, int enlarge);

}  // namespace tessera::viz
