// Special functions and number theory: maps that are plain loops.
#pragma once
#include "kernels/elementwise/map_table.hpp"

namespace tessera::kernels {

void add_special_maps(MapTable&);

}  // namespace tessera::kernels
