#include "kernels/elementwise/elementwise.hpp"

#include <algorithm>

#include "kernels/elementwise/map_table.hpp"

namespace tessera::kernels {
namespace {

enum class Gives { same, boolean, real, complex };
struct OpShape {
  std::string_view name;
  int arity;
  Gives gives;
};

// Ops that have one operand and give its dtype need no line here.
constexpr OpShape op_shapes[] = {
    {"abs", 1, Gives::real},
    {"real", 1, Gives::real},
    {"imag", 1, Gives::real},
    {"isnan", 1, Gives::boolean},
    {"isfinite", 1, Gives::boolean},
    {"isinf", 1, Gives::boolean},
    {"logical_not", 1, Gives::boolean},
    {"add", 2, Gives::same},
    {"subtract", 2, Gives::same},
    {"multiply", 2, Gives::same},
    {"divide", 2, Gives::same},
    {"floor_divide", 2, Gives::same},
    {"remainder", 2, Gives::same},
    {"power", 2, Gives::same},
    {"maximum", 2, Gives::same},
    {"minimum", 2, Gives::same},
    {"atan2", 2, Gives::same},
    {"hypot", 2, Gives::same},
    {"logaddexp", 2, Gives::same},
    {"copysign", 2, Gives::same},
    {"nextafter", 2, Gives::same},
    {"bitwise_and", 2, Gives::same},
    {"bitwise_or", 2, Gives::same},
    {"bitwise_xor", 2, Gives::same},
    {"left_shift", 2, Gives::same},
    {"right_shift", 2, Gives::same},
    {"equal", 2, Gives::boolean},
    {"not_equal", 2, Gives::boolean},
    {"less", 2, Gives::boolean},
    {"less_equal", 2, Gives::boolean},
    {"greater", 2, Gives::boolean},
    {"greater_equal", 2, Gives::boolean},
    {"logical_and", 2, Gives::boolean},
    {"logical_or", 2, Gives::boolean},
    {"logical_xor", 2, Gives::boolean},
    {"complex", 2, Gives::complex},
    {"where", 3, Gives::same},
    {"clip", 3, Gives::same},
    {"multiply_add", 3, Gives::same},
};

const OpShape* find_shape(std::string_view op) {
  const auto* found = std::find_if(std::begin(op_shapes), std::end(op_shapes),
                                   [&](const OpShape& row) { return row.name == op; });
  return found == std::end(op_shapes) ? nullptr : found;
}

const MapTable& maps() {
  static const MapTable table = [] {
    MapTable filling;
    add_integer_maps(filling);
    add_float_maps(filling);
    add_math_maps(filling);
    add_complex_maps(filling);
    return filling;
  }();
  return table;
}

}  // namespace

MapFn find_map(std::string_view op, Dtype in) { return maps().find(op, in); }

Dtype map_result(std::string_view op, Dtype in) {
  const OpShape* shape = find_shape(op);
  switch (shape == nullptr ? Gives::same : shape->gives) {
    case Gives::boolean: return bool_;
    case Gives::real: return real_dtype(in);
    case Gives::complex: return complex_dtype(in);
    case Gives::same: break;
  }
  return in;
}

int map_arity(std::string_view op) {
  if (const OpShape* shape = find_shape(op)) return shape->arity;
  return maps().rows().count(op) != 0 ? 1 : 0;
}

std::vector<std::string_view> map_names() {
  std::vector<std::string_view> names;
  for (const auto& [op, row] : maps().rows()) names.push_back(op);
  return names;
}

}  // namespace tessera::kernels
