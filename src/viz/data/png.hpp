// Numbers as the pixels of a PNG file.
#pragma once
#include <string>

#include "viz/data/colormap.hpp"
#include "viz/data/grid.hpp"

namespace tessera::viz {

// One pixel per number, `enlarge` times in each direction; NaN is transparent. Returns the bytes of the file,
// which are the same for equal pixels.
std::string png_of(const DataGrid&, const ValueRange&, const Colormap&, int enlarge);

}  // namespace tessera::viz
