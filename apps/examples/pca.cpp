// Principal components of 20,000 samples with 6 features, split by samples: the reduced SVD of a tall matrix
// sends a few triangles of 6 x 6 and no sample.
//
//   tessera run -n 4 example_pca
//
// The samples are cosines of whole periods, which are orthogonal with known sizes, transformed by a known
// reflection, so the variances and the components are known.
#include <cmath>
#include <numbers>

#include "example.hpp"

using namespace tessera;

namespace {

constexpr int samples = 20000, features = 6;

Array sizes() { return array({9.0, 6.0, 4.0, 2.0, 1.0, 0.5}); }

// 1 - 2 v v^T / v^T v
Array reflection() {
  const Array v = astype(arange(features) + 1, float64);
  return eye(features, float64) - 2.0 / 91 * outer(v, v);  // 1 + 4 + 9 + 16 + 25 + 36 = 91
}

Array known_samples(const Mesh& mesh) {
  const Array t = astype(arange(samples), float64) * (2 * std::numbers::pi / samples);
  const Array waves = cos(expand_dims(t, 1) * astype(arange(features) + 1, float64));
  return device_put(matmul(waves * sizes(), reflection()) + 5, mesh, P("x", None));
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::run(argc, argv, [] {
    const Array x = known_samples(example::all_devices());
    eval({x});
    debug::CommStats stats;
    const Array centred = x - mean(x, 0);
    const auto [u, s, components] = linalg::svd(centred, {.full_matrices = false});
    const Array variances = square(s) / samples;
    eval({variances, components});
    debug::print("{} bytes received by rank 0", stats.bytes());
    example::picture("explained variance", variances);
    example::picture("samples along the first component", u(slice(), 0));
    example::expect_close("variances", variances, square(sizes()) / 2, 1e-10);
    example::expect_close("components, up to their signs", abs(matmul(components, reflection())),
                          eye(features, float64), 1e-9);
  });
}
