// The power spectrum of a random field in a periodic box, as cosmologists measure it.
//
//   tessera run -n 4 spectrum [--n 128] [--slope -2] [--seed 0] [--verify]
//
// A filter in Fourier space gives white noise the spectrum P(k) = k^slope; then the field's own spectrum is
// measured: the mean of |field_k|^2 over the modes of each shell k - 1/2 <= |k| < k + 1/2. The noise is the
// same on any number of ranks.
#include <tessera/tessera.hpp>

#include <cmath>
#include <cstdio>

#include "usage.hpp"

using namespace tessera;

namespace {

struct Modes {
  Array length;  // |k| of every mode of the half spectrum
  Array weight;  // 2 for modes that also represent their conjugate
};

Modes modes_of(std::int64_t n) {
  const double spacing = 1.0 / static_cast<double>(n);
  const Array k = fft::fftfreq(n, spacing), k_half = fft::rfftfreq(n, spacing);
  const Array squares = square(reshape(k, {n, 1, 1})) + square(reshape(k, {1, n, 1})) +
                        square(reshape(k_half, {1, 1, n / 2 + 1}));
  const Array alone = (k_half == 0) | (k_half * 2 == static_cast<float>(n));
  return {sqrt(squares), reshape(where(alone, 1.0f, 2.0f), {1, 1, n / 2 + 1})};
}

// Real noise with <|field_k|^2> = P(k) for the transform with norm "ortho".
Array random_field(std::int64_t n, double slope, std::int64_t seed, const Sharding& sharding) {
  const Array noise = device_put(random::normal(random::key(seed), {n, n, n}), sharding);
  const Modes modes = modes_of(n);
  const Array amplitude = where(
      modes.length == 0, 0, power(where(modes.length == 0, 1, modes.length), static_cast<float>(slope / 2)));
  const Array spectrum = fft::rfftn(noise, {.norm = "ortho", .out_sharding = fft::transposed}) * amplitude;
  return fft::irfftn(spectrum, {.norm = "ortho", .given = sharding, .s = {n, n, n}});
}

struct Shells {
  std::vector<double> k, power, modes;
  double energy_ratio = 0;  // ratio of the modes' energy to the field's: 1 by Parseval's theorem
};

Shells measure(const Array& field) {
  const auto n = field.shape()[0], shells = n / 2;
  const Modes modes = modes_of(n);
  const Array half = fft::rfftn(field, {.norm = "ortho", .out_sharding = fft::transposed});
  const Array energy = (square(real(half)) + square(imag(half))) * modes.weight;
  const Array shell = round(modes.length), counted = broadcast_to(modes.weight, half.shape()),
              lengths = modes.length * modes.weight;
  std::vector<Array> sums;  // one pass over the spectrum, one small sum over ranks per shell
  for (std::int64_t s = 1; s < shells; ++s) {
    const Array inside = shell == static_cast<float>(s);
    sums.push_back(stack({sum(where(inside, energy, 0.0f)), sum(where(inside, counted, 0.0f)),
                          sum(where(inside, lengths, 0.0f))}));
  }
  const auto table = to_vector<double>(stack(sums));
  Shells result;
  result.energy_ratio = item<double>(sum(astype(energy, float64)) / sum(square(astype(field, float64))));
  for (std::size_t s = 0; s < table.size(); s += 3) {
    result.k.push_back(table[s + 2] / table[s + 1]);
    result.power.push_back(table[s] / table[s + 1]);
    result.modes.push_back(table[s + 1]);
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t n = 64, seed = 0;
  double slope = -2;
  bool verify = false;
  CLI::App app("Measures the power spectrum of a random field of n^3 points", "spectrum");
  app.add_option("--n", n, "points along each axis")->check(CLI::Range(8, 2048));
  app.add_option("--slope", slope, "of the field's spectrum, P(k) = k^slope");
  app.add_option("--seed", seed, "of the noise");
  app.add_flag("--verify", verify,
               "exit with status 1 unless the measured spectrum is the field's within its sampling error");
  if (const auto status = apps::status_of_words(app, argc, argv)) return *status;
  double worst = 0, parseval_error = 0;
  const int status = run(argc, argv, [&] {
    const Sharding sharding = NamedSharding(make_mesh({process_count()}, {"x"}), P("x"));
    const Shells shells = measure(random_field(n, slope, seed, sharding));
    if (is_main_process()) std::printf("%8s %14s %14s %10s\n", "k", "P(k)", "k^slope", "modes");
    for (std::size_t s = 0; s < shells.k.size(); ++s) {
      const double expected = std::pow(shells.k[s], slope);
      // A shell of m independent modes has an uncertainty of sqrt(2 / m); within a shell k^slope varies, most
      // in the first ones.
      worst = std::max(worst, std::abs(shells.power[s] / expected - 1) /
                                  (std::sqrt(2 / shells.modes[s]) + 0.05 * std::abs(slope) / shells.k[s]));
      if (is_main_process())
        std::printf("%8.3f %14.6g %14.6g %10.0f\n", shells.k[s], shells.power[s], expected, shells.modes[s]);
    }
    parseval_error = std::abs(shells.energy_ratio - 1);
    if (is_main_process())
      std::printf("energy of the modes / energy of the field - 1 = %.1e\n", shells.energy_ratio - 1);
  });
  if (status == 0 && verify && parseval_error > 1e-5) {
    if (apps::is_first_rank())
      std::fprintf(stderr, "spectrum: the modes hold %g more or less energy than the field\n",
                   parseval_error);
    return 1;
  }
  if (status == 0 && verify && worst > 5) {
    if (apps::is_first_rank())
      std::fprintf(stderr, "spectrum: a shell is off by %.1f times its sampling error\n", worst);
    return 1;
  }
  return status;
}
