// |z| of complex numbers.
#pragma once
#include "kernels/elementwise/map_table.hpp"

namespace tessera::kernels {

void add_magnitude_maps(MapTable&);

}  // namespace tessera::kernels
