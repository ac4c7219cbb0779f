// The table of map functions: each file maps_*.cpp adds its own, compiled for the best instruction set of
// this machine.
#pragma once
#include "kernels/elementwise/elementwise.hpp"

namespace tessera::kernels {

class MapTable {
 public:
  void add(Map& map, int arity, Dtype in, MapFn function, Dtype result);
  void add(Map& map, int arity, Dtype in, MapFn function) { add(map, arity, in, function, in); }
  void add_precise(Map& map, Dtype in, MapFn function);  // a more precise function beside the one added

  std::vector<const Map*> maps;
};

void add_integer_maps(MapTable&);
void add_float_maps(MapTable&);
void add_math_maps(MapTable&);
void add_complex_maps(MapTable&);

}  // namespace tessera::kernels
