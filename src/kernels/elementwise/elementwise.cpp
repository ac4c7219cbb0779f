#include "kernels/elementwise/elementwise.hpp"

#include "base/settings.hpp"
#include "kernels/elementwise/complex/divide.hpp"
#include "kernels/elementwise/complex/magnitude.hpp"
#include "kernels/elementwise/complex/multiply.hpp"
#include "kernels/elementwise/map_table.hpp"
#include "kernels/elementwise/maps_special.hpp"

namespace tessera::kernels {
void MapTable::add(Map& map, int arity, Dtype in, MapFn function, Dtype result) {
  if (map.arity_ == 0) maps.push_back(&map);
  map.arity_ = arity;
  map.functions_[in.code] = function;
  map.results_[in.code] = result;
}

void MapTable::add_precise(Map& map, Dtype in, MapFn function) { map.precise_[in.code] = function; }

// Filled at the first call, when the allowed instruction sets are known.
const std::vector<const Map*>& all_maps() {
  static const std::vector<const Map*> maps = [] {
    MapTable table;
    add_integer_maps(table);
    add_float_maps(table);
    add_math_maps(table);
    add_complex_maps(table);
    add_magnitude_maps(table);
    add_product_maps(table);
    add_quotient_maps(table);
    add_special_maps(table);
    std::sort(table.maps.begin(), table.maps.end(),
              [](const Map* a, const Map* b) { return std::string_view(a->name()) < b->name(); });
    return std::move(table.maps);
  }();
  return maps;
}

MapFn Map::of(Dtype in) const {
  all_maps();
  return settings().precise_math && precise_[in.code] != nullptr ? precise_[in.code] : functions_[in.code];
}
Dtype Map::result(Dtype in) const { return all_maps(), results_[in.code]; }
int Map::arity() const { return all_maps(), arity_; }

}  // namespace tessera::kernels
