// Heat on a ring-shaped plate: u_t = laplace(u), explicit Euler on an n x n grid that is split by rows.
// Neighbours exchange only the rows at the edges of blocks.
//
//   tessera run -n 4 example_heat
//
// A cosine stays a cosine: each step multiplies it by a known factor, so the result is known.
#include <cmath>
#include <numbers>

#include "example.hpp"

using namespace tessera;

namespace {

constexpr int n = 96, steps = 200;
constexpr double r = 0.2;  // dt / dx^2; stable up to 1/4

Array step(const Array& u) {
  return u + r * (roll(u, 1, 0) + roll(u, -1, 0) + roll(u, 1, 1) + roll(u, -1, 1) - 4 * u);
}

Array cosines(int along_rows, int along_columns) {
  const Array angle = astype(arange(n), float64) * (2 * std::numbers::pi / n);
  return expand_dims(cos(along_rows * angle), 1) * expand_dims(cos(along_columns * angle), 0);
}

// The factor by which a step multiplies such a cosine.
double factor(int along_rows, int along_columns) {
  const auto wave = [](int k) { return 2 - 2 * std::cos(2 * std::numbers::pi * k / n); };
  return 1 - r * (wave(along_rows) + wave(along_columns));
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::run(argc, argv, [] {
    const Array start = device_put(cosines(1, 2) + 0.5 * cosines(4, 3), example::all_devices(), P("x", None));
    const auto simulate = jit([](const Array& u) {
      return fori_loop(
          0, steps, [](const Array&, const Array& v) { return step(v); }, u);
    });
    const Array end = simulate(start);
    example::picture("temperature at the start", start);
    example::picture("and after 200 steps", end);
    const Array exact =
        std::pow(factor(1, 2), steps) * cosines(1, 2) + 0.5 * std::pow(factor(4, 3), steps) * cosines(4, 3);
    example::expect_close("heat", end, exact, 1e-12);
  });
}
