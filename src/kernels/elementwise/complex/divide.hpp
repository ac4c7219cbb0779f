// Quotients and reciprocals of complex numbers by Smith's method, several at a time.
#pragma once
#include "kernels/elementwise/map_table.hpp"

namespace tessera::kernels {

void add_quotient_maps(MapTable&);

}  // namespace tessera::kernels
