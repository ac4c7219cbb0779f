// Colours of blocks.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tessera::viz {

struct Rgb {
  std::uint8_t r = 0, g = 0, b = 0;
  friend bool operator==(const Rgb&, const Rgb&) = default;
};
std::string hex(Rgb);  // #rrggbb

inline constexpr int palette_size = 20;
Rgb palette(int entry);            // matplotlib's tab20b
Rgb ink_on(Rgb background);        // black or white; JAX's rule, which leaves white on light pink
Rgb clear_ink_on(Rgb background);  // the one with the higher contrast

// The palette entry of the k-th of n cells. JAX takes colours in steps of half the colour map, so that
// neighbours differ.
int jax_colour(int k, int n);

}  // namespace tessera::viz
