// Poisson's equation on a periodic box, by Fourier transforms: -laplace(u) = f on [0, 2 pi)^3, u with mean 0.
//
//   tessera run -n 4 poisson [--n 128] [--pencils] [--verify] [--explain]
//
// The solution is known: u = exp(sin x + cos y + sin 2z) minus its mean. A smooth function's error falls
// faster than any power of n, until only rounding is left. The division by k^2 happens in the layout in which
// the last stage of the transform leaves the spectrum, so that the box is exchanged once in each direction.
#include <tessera/tessera.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "usage.hpp"

using namespace tessera;

namespace {

struct Problem {
  Array u, f;  // the exact solution and the right-hand side
};

// x, y or z as an array that broadcasts over the box.
Array coordinate(std::int64_t n, int axis) {
  Shape along{1, 1, 1};
  along[axis] = n;
  return reshape(astype(arange(n), float64) * (2 * std::numbers::pi / static_cast<double>(n)), along);
}

Problem known_problem(std::int64_t n, const Sharding& sharding) {
  const Array x = coordinate(n, 0), y = coordinate(n, 1), z = coordinate(n, 2);
  const Array u = device_put(exp(sin(x) + cos(y) + sin(2 * z)), sharding);
  // u_xx = u (cos^2 x - sin x), u_yy = u (sin^2 y - cos y), u_zz = u (4 cos^2 2z - 4 sin 2z)
  const Array f =
      -(u * (square(cos(x)) - sin(x) + square(sin(y)) - cos(y) + 4 * square(cos(2 * z)) - 4 * sin(2 * z)));
  return {u - mean(u), f};
}

Array solve(const Array& f) {
  const auto n = f.shape()[0];
  const Array k = fft::fftfreq(n, 1.0 / static_cast<double>(n), float64),
              k_half = fft::rfftfreq(n, 1.0 / static_cast<double>(n), float64);
  const Array k_squared = square(reshape(k, {n, 1, 1})) + square(reshape(k, {1, n, 1})) +
                          square(reshape(k_half, {1, 1, n / 2 + 1}));
  const Array spectrum = fft::rfftn(f, {.out_sharding = fft::transposed});
  const Array solution = where(k_squared == 0, 0, spectrum / where(k_squared == 0, 1, k_squared));
  return fft::irfftn(solution, {.given = f.sharding(), .s = {n, n, n}});
}

double seconds_of(const Array& f) {
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    block_until_ready(solve(f));
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return least;
}

// Slabs, or a grid of ranks as square as possible.
Sharding split_box(bool pencils) {
  const int ranks = process_count();
  if (!pencils) return NamedSharding(make_mesh({ranks}, {"x"}), P("x"));
  int rows = static_cast<int>(std::sqrt(ranks));
  while (ranks % rows != 0) --rows;
  return NamedSharding(make_mesh({rows, ranks / rows}, {"x", "y"}), P("x", "y"));
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t n = 128;
  bool pencils = false, verify = false, explains = false;
  CLI::App app("Solves Poisson's equation on a periodic box of n^3 points", "poisson");
  app.add_option("--n", n, "points along each axis")->check(CLI::Range(8, 4096));
  app.add_flag("--pencils", pencils, "split two axes of the box instead of one");
  app.add_flag("--verify", verify, "exit with status 1 unless the error is at rounding level");
  app.add_flag("--explain", explains, "show what the solution communicates");
  if (const auto status = apps::status_of_words(app, argc, argv)) return *status;
  double error = 0;
  const int status = run(argc, argv, [&] {
    const Sharding sharding = split_box(pencils);
    for (std::int64_t size = std::min<std::int64_t>(n, 8); size <= n;
         size = size == n ? n + 1 : std::min(2 * size, n)) {
      const auto [u, f] = known_problem(size, sharding);
      error = item<double>(max(abs(solve(f) - u)) / max(abs(u)));
      if (is_main_process())
        std::printf("n = %4lld   largest error %.2e of the largest value\n", static_cast<long long>(size),
                    error);
    }
    const auto [u, f] = known_problem(n, sharding);
    eval(f);
    const double seconds = seconds_of(f);
    if (is_main_process())
      std::printf("%lld^3 points on %d ranks: %.4f s\n", static_cast<long long>(n), process_count(), seconds);
    if (explains) {
      const auto text = to_string(explain(solve, f));
      if (is_main_process()) std::printf("%s\n", text.c_str());
    }
  });
  if (status == 0 && verify && !(error < (n >= 44 ? 1e-12 : 1e-1))) {
    if (apps::is_first_rank())
      std::fprintf(stderr, "poisson: the error %.2e is above rounding level\n", error);
    return 1;
  }
  return status;
}
