// Poisson's equation on a square with u = 0 at its edges, solved exactly by sine transforms: two products
// with a matrix of sines in each direction, which follow the layout of the right-hand side.
//
//   tessera run -n 4 example_poisson_2d
//
// For 5-point differences the solution for a product of sines is that product times a known factor.
#include <cmath>
#include <numbers>

#include "example.hpp"

using namespace tessera;

namespace {

constexpr int n = 63;
constexpr double pi = std::numbers::pi;

Array numbers() { return astype(arange(n) + 1, float64); }

// Orthonormal and symmetric, so its own inverse.
Array sines() {
  return std::sqrt(2.0 / (n + 1)) *
         sin(expand_dims(numbers(), 1) * expand_dims(numbers(), 0) * (pi / (n + 1)));
}
// Eigenvalues of second differences: 2 - 2 cos(k pi / (n + 1)).
Array eigenvalues() { return 2 - 2 * cos(numbers() * (pi / (n + 1))); }

Array solve(const Array& f) {
  const Array s = sines(), lambda = eigenvalues();
  const Array spectrum = matmul(matmul(s, f), s);
  return matmul(matmul(s, spectrum / (expand_dims(lambda, 1) + expand_dims(lambda, 0))), s);
}

// The operator itself: minus the sum of second differences.
Array apply(const Array& u) {
  const Array p = pad(u, {{1, 1}, {1, 1}});
  const Slice inner = slice(1, n + 1);
  return 4 * u - p(slice(0, n), inner) - p(slice(2, n + 2), inner) - p(inner, slice(0, n)) -
         p(inner, slice(2, n + 2));
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::run(argc, argv, [] {
    const Array t = numbers() * (pi / (n + 1));
    const Array shape = expand_dims(sin(2 * t), 1) * expand_dims(sin(3 * t), 0);
    const double lambda = 4 - 2 * std::cos(2 * pi / (n + 1)) - 2 * std::cos(3 * pi / (n + 1));
    const Array f = device_put(shape, example::all_devices(), P("x", None));
    const Array u = jit(solve)(f);
    example::picture("u", u);
    example::expect_close("Poisson", u, shape / lambda, 1e-11);
    example::expect_close("its differences", apply(u), f, 1e-12);
  });
}
