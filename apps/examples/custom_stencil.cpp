// Waves on a ring-shaped plate, by a user-defined kernel: u_tt = laplace(u), leapfrog on an n x n grid that
// is split by rows and columns. The op's rule says that blocks of u have a margin; the library fetches it.
//
//   tessera run -n 4 example_custom_stencil
//
// Energy is the check: a standing wave swings as a cosine of time whose frequency on the grid is known.
#include <cmath>
#include <numbers>

#include "example.hpp"

using namespace tessera;

namespace {

constexpr int n = 96, steps = 200;
constexpr double r = 0.3;  // (dt / dx)^2; stable up to 1/2

// (u, before) -> the next u: one pass over each rank's block.
const CustomOp& leapfrog() {
  static const CustomOp op =
      custom_op({.name = "leapfrog",
                 .rule = "~i ~j, i j -> i j",
                 .kernel =
                     [](BlockView<const double> u, BlockView<const double> before, BlockView<double> next) {
                       for (int i = 0; i < next.extent(0); ++i)
                         for (int j = 0; j < next.extent(1); ++j)
                           next(i, j) =
                               2 * u(i, j) - before(i, j) +
                               r * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1) - 4 * u(i, j));
                     },
                 .halo = {{"i"}, {"j"}}});
  return op;
}

Array wave(int along_rows, int along_columns) {
  const Array angle = astype(arange(n), float64) * (2 * std::numbers::pi / n);
  return expand_dims(cos(along_rows * angle), 1) * expand_dims(cos(along_columns * angle), 0);
}

// The angle by which a step turns such a wave: 2 cos(angle) = 2 - r (eigenvalue of the difference).
double angle_of(int along_rows, int along_columns) {
  const auto part = [](int k) { return 2 - 2 * std::cos(2 * std::numbers::pi * k / n); };
  return std::acos(1 - r / 2 * (part(along_rows) + part(along_columns)));
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::run(argc, argv, [] {
    const int p = device_count(), columns = p % 2 == 0 ? 2 : 1;
    const Mesh grid = make_mesh({p / columns, columns}, {"x", "y"});
    const double angle = angle_of(3, 2);
    const Array u = device_put(wave(3, 2), grid, P("x", "y")), before = u * std::cos(angle);
    const auto simulate = jit([](const Array& now, const Array& last) {
      const auto step = [](const Array&, const std::pair<Array, Array>& v) {
        return std::pair{leapfrog()(v.first, v.second), v.first};
      };
      return fori_loop(0, steps, step, std::pair{now, last}).first;
    });
    const Array end = simulate(u, before);
    example::picture("height at the end", end);
    debug::print("{}", explain([](const Array& a, const Array& b) { return leapfrog()(a, b); }, u, before));
    example::expect_close("custom_stencil", end, std::cos(steps * angle) * wave(3, 2), 1e-10);
  });
}
