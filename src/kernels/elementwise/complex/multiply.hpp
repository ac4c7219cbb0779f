// Products and conjugates of complex numbers, several at a time.
#pragma once
#include "kernels/elementwise/map_table.hpp"

namespace tessera::kernels {

void add_product_maps(MapTable&);

}  // namespace tessera::kernels
