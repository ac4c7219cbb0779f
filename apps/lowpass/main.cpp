// A low-pass filter for images and volumes: removes fine detail.
//
//   tessera run -n 4 lowpass IN.npy|IN.pgm [--cutoff 0.4] [--out filtered] [--verify]
//
// Each frequency is multiplied by exp(-(f / cutoff)^2 / 2), f in units of the highest one: a Gaussian blur
// over periodic borders. Writes filtered-before.pgm and filtered-after.pgm (of a volume: its middle slice),
// and filtered.npy with all values. An .npy of 8 x 8 digits (rows of 64) is laid out as a sheet.
#include <tessera/tessera.hpp>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <numbers>

#include "usage.hpp"

using namespace tessera;

namespace {

Array read_pgm(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string magic;
  std::int64_t width = 0, height = 0, most = 0;
  file >> magic >> width >> height >> most;
  file.get();
  if (!file || magic != "P5" || most > 255)
    throw IoError("lowpass: " + path + " is not a binary 8-bit PGM without comments");
  std::string pixels(width * height, '\0');
  if (!file.read(pixels.data(), static_cast<std::streamsize>(pixels.size())))
    throw IoError("lowpass: " + path + " is shorter than its header says");
  return astype(array(std::vector<std::uint8_t>(pixels.begin(), pixels.end()), Shape{height, width}),
                float32);
}

// 1024 of the digits in a grid of 32 x 32.
Array as_sheet(const Array& rows) {
  return reshape(transpose(reshape(rows(slice(0, 1024)), {32, 32, 8, 8}), {0, 2, 1, 3}), {256, 256});
}

Array read_file(const std::string& path, const Mesh& mesh) {
  if (path.ends_with(".pgm")) return device_put(read_pgm(path), mesh, P("x"));
  const Array values = astype(io::load_npy(path, NamedSharding(mesh, P("x"))), float32);
  if (values.ndim() == 2 && values.shape()[1] == 64 && values.shape()[0] >= 1024)
    return device_put(as_sheet(values), mesh, P("x"));
  if (values.ndim() != 2 && values.ndim() != 3)
    throw ArgumentError("lowpass: " + path + " has " + std::to_string(values.ndim()) +
                        " dimensions; it takes images (2) and volumes (3)");
  return values;
}

// exp(-(f / cutoff)^2 / 2) over the half spectrum, separable: one factor per axis.
Array low_pass(const Array& x, double cutoff) {
  Array spectrum = fft::rfftn(x, {.out_sharding = fft::transposed});
  for (int d = 0; d < x.ndim(); ++d) {
    const auto n = x.shape()[d];
    Shape along(std::vector<std::int64_t>(x.shape().size(), 1));
    along[d] = spectrum.shape()[d];
    const Array f = (d + 1 == x.ndim() ? fft::rfftfreq(n) : fft::fftfreq(n)) * static_cast<float>(2 / cutoff);
    spectrum = spectrum * reshape(exp(-square(f) / 2), along);
  }
  return fft::irfftn(spectrum, {.given = x.sharding(), .s = x.shape().vector()});
}

void write_pgm(const std::string& path, const Array& x) {
  const Array picture = x.ndim() == 3 ? x(x.shape()[0] / 2) : x;
  const double low = item<double>(min(picture)), high = item<double>(max(picture));
  const auto pixels =
      to_vector<std::uint8_t>(astype((picture - low) * (255 / std::max(high - low, 1e-30)) + 0.5, uint8));
  if (!is_main_process()) return;
  std::ofstream file(path, std::ios::binary);
  file << "P5\n" << picture.shape()[1] << " " << picture.shape()[0] << "\n255\n";
  file.write(reinterpret_cast<const char*>(pixels.data()), static_cast<std::streamsize>(pixels.size()));
  if (!file.flush()) throw IoError("lowpass: cannot write " + path);
}

// The filter by definition at one point: the sum over all elements with its kernel, a product of cosine
// sums.
double by_definition(const std::vector<double>& x, const Shape& shape, double cutoff,
                     const std::vector<std::int64_t>& at) {
  std::vector<std::vector<double>> kernel;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto n = shape[d];
    kernel.emplace_back(n);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t k = 0; k < n; ++k) {
        const double f = 2 * static_cast<double>(std::min(k, n - k)) / static_cast<double>(n) / cutoff;
        kernel[d][i] +=
            std::exp(-f * f / 2) *
            std::cos(2 * std::numbers::pi * static_cast<double>(i * k % n) / static_cast<double>(n)) /
            static_cast<double>(n);
      }
  }
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double weight = x[i];
    for (std::size_t d = shape.size(), rest = i; d-- > 0; rest /= static_cast<std::size_t>(shape[d]))
      weight *= kernel[d][(at[d] - static_cast<std::int64_t>(rest) % shape[d] + shape[d]) % shape[d]];
    sum += weight;
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  std::string in, out = "filtered";
  double cutoff = 0.4;
  bool verify = false;
  CLI::App app("Filters an image or a volume", "lowpass");
  app.add_option("in", in, ".npy or .pgm")->required()->check(CLI::ExistingFile);
  app.add_option("--out", out, "how the results' names begin");
  app.add_option("--cutoff", cutoff, "frequency of the filter's width, as a fraction of the highest")
      ->check(CLI::PositiveNumber);
  app.add_flag("--verify", verify, "compare some points with the filter's definition");
  if (const auto status = apps::status_of_words(app, argc, argv)) return *status;
  double worst = 0;
  const int status = run(argc, argv, [&] {
    const Array before = read_file(in, make_mesh({process_count()}, {"x"})), after = low_pass(before, cutoff);
    write_pgm(out + "-before.pgm", before);
    write_pgm(out + "-after.pgm", after);
    io::save_npy(out + ".npy", after);
    const double range = item<double>(max(before) - min(before));
    if (verify) {
      const auto x = to_vector<double>(before), y = to_vector<double>(after);
      for (const std::size_t i : {std::size_t{0}, x.size() / 3, x.size() / 2 + 5, x.size() - 1}) {
        std::vector<std::int64_t> at(before.shape().size());
        for (std::size_t d = at.size(), rest = i; d-- > 0;
             rest /= static_cast<std::size_t>(before.shape()[d]))
          at[d] = static_cast<std::int64_t>(rest) % before.shape()[d];
        worst = std::max(worst, std::abs(by_definition(x, before.shape(), cutoff, at) - y[i]) / range);
      }
    }
    const double contrast = item<double>(sqrt(var(after) / var(before)));
    if (is_main_process()) {
      std::printf("%s %s: contrast %.3f of what it was\n", in.c_str(), to_string(before.shape()).c_str(),
                  contrast);
      std::printf("%s-before.pgm, %s-after.pgm and %s.npy written\n", out.c_str(), out.c_str(), out.c_str());
      if (verify) std::printf("largest error of some points: %.1e of the range\n", worst);
    }
  });
  if (status == 0 && verify && worst > 1e-5) {
    if (apps::is_first_rank())
      std::fprintf(stderr, "lowpass: the result differs from the filter's definition by %g of the range\n",
                   worst);
    return 1;
  }
  return status;
}
