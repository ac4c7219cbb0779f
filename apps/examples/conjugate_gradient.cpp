// Conjugate gradients for -u'' = 1 on a line with u = 0 at its ends: the vectors are split over the ranks,
// the operator exchanges one number with each neighbour, and two dot products per step are summed over all.
//
//   tessera run -n 4 example_conjugate_gradient
//
// u is a parabola, which also solves the difference equation: u_i = i (n + 1 - i) / 2.
#include "example.hpp"

using namespace tessera;

namespace {

constexpr int n = 401;

struct State {
  Array x, residual, direction, squares;  // squares: of the residual's elements, summed
};

Array apply(const Array& u) {
  const Array padded = pad(u, {{1, 1}});
  return 2 * u - padded(slice(0, n)) - padded(slice(2, n + 2));
}

State step(const State& s) {
  const Array image = apply(s.direction);
  const Array length = s.squares / dot(s.direction, image);
  const Array residual = s.residual - length * image, squares = dot(residual, residual);
  return {s.x + length * s.direction, residual, residual + squares / s.squares * s.direction, squares};
}

State solve(const Array& b) {
  const State start{zeros_like(b), b, b, dot(b, b)};
  return while_loop([](const State& s) { return s.squares > 1e-20; }, step, start);
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::run(argc, argv, [] {
    const Array b = device_put(ones({n}, float64), example::all_devices(), P("x"));
    const State solved = jit(solve)(b);
    example::picture("u", solved.x);
    const Array i = astype(arange(n) + 1, float64);
    example::expect_close("conjugate gradients", solved.x, i * (n + 1 - i) / 2, 1e-7);
  });
}
