#include "viz/palette.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace tessera::viz {
namespace {

constexpr std::array<std::uint32_t, palette_size> tab20b = {
    0x393b79, 0x5254a3, 0x6b6ecf, 0x9c9ede, 0x637939, 0x8ca252, 0xb5cf6b, 0xcedb9c, 0x8c6d31, 0xbd9e39,
    0xe7ba52, 0xe7cb94, 0x843c39, 0xad494a, 0xd6616b, 0xe7969c, 0x7b4173, 0xa55194, 0xce6dbd, 0xde9ed6,
};

double brightness(Rgb c) { return 0.299 * c.r + 0.587 * c.g + 0.114 * c.b; }

}  // namespace

std::string hex(Rgb colour) {
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", colour.r, colour.g, colour.b);
  return text;
}

Rgb palette(int entry) {
  std::uint32_t rgb = tab20b[entry];
  return {static_cast<std::uint8_t>(rgb >> 16), static_cast<std::uint8_t>(rgb >> 8),
          static_cast<std::uint8_t>(rgb)};
}

Rgb ink_on(Rgb background) { return brightness(background) > 186 ? Rgb{0, 0, 0} : Rgb{255, 255, 255}; }
Rgb clear_ink_on(Rgb background) { return brightness(background) > 128 ? Rgb{0, 0, 0} : Rgb{255, 255, 255}; }

int jax_colour(int k, int n) {
  if (n == 1) return 0;
  std::int64_t step = n / 2 + (n % 2 == 0 ? 1 : 0);
  std::int64_t place = k * step % n;
  double value = static_cast<double>(place) / (n - 1);
  return std::min(static_cast<int>(value * palette_size), palette_size - 1);
}

}  // namespace tessera::viz
