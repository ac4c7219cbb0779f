// The functions behind find_map: each family of ops adds its own, compiled for the best instruction set of
// this machine.
#pragma once
#include <array>
#include <map>
#include <string_view>

#include "kernels/elementwise/elementwise.hpp"

namespace tessera::kernels {

class MapTable {
 public:
  void add(std::string_view op, Dtype dtype, MapFn fn) { rows_[op][dtype.code] = fn; }
  MapFn find(std::string_view op, Dtype dtype) const {
    const auto row = rows_.find(op);
    return row == rows_.end() ? nullptr : row->second[dtype.code];
  }
  const auto& rows() const { return rows_; }

 private:
  std::map<std::string_view, std::array<MapFn, dtype_count>> rows_;
};

void add_integer_maps(MapTable&);
void add_float_maps(MapTable&);
void add_math_maps(MapTable&);
void add_complex_maps(MapTable&);

}  // namespace tessera::kernels
