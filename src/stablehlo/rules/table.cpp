// All rules, and the reasons of what has none.
#include <array>
#include <utility>

#include "stablehlo/rules/rules.hpp"

namespace tessera::stablehlo {

const Rules& rules() {
  static const Rules all = [] {
    Rules made;
    for (const auto add :
         {add_elementwise, add_bits, add_shapes, add_products, add_reductions, add_windows, add_sorts,
          add_indexing, add_scatter, add_control, add_matrices, add_random, add_layouts, add_manual})
      add(made);
    return made;
  }();
  return all;
}

std::string why_left_out(std::string_view name) {
  constexpr std::string_view from_shapes = "shapes that are values: export the program for shapes in numbers";
  constexpr std::string_view from_host = "it moves data between XLA and a program of its own";
  constexpr std::array<std::pair<std::string_view, std::string_view>, 13> reasons{{
      {"stablehlo.dynamic_broadcast_in_dim", from_shapes},
      {"stablehlo.dynamic_conv", from_shapes},
      {"stablehlo.dynamic_gather", from_shapes},
      {"stablehlo.dynamic_iota", from_shapes},
      {"stablehlo.dynamic_pad", from_shapes},
      {"stablehlo.dynamic_reshape", from_shapes},
      {"stablehlo.real_dynamic_slice", from_shapes},
      {"stablehlo.get_dimension_size", from_shapes},
      {"stablehlo.infeed", from_host},
      {"stablehlo.outfeed", from_host},
      {"stablehlo.send", from_host},
      {"stablehlo.recv", from_host},
      {"stablehlo.rng", "its numbers depend on the state of the device: use keys of jax.random"},
  }};
  for (const auto& [known, reason] : reasons)
    if (known == name) return ": " + std::string(reason);
  if (name.find("quantize") != std::string_view::npos) return ": quantized numbers serve accelerators";
  return "";
}

}  // namespace tessera::stablehlo
