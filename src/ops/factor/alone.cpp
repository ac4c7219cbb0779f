#include "ops/factor/alone.hpp"

namespace tessera::factor {
namespace {
bool always_together = false;
}
Together::Together() { always_together = true; }
Together::~Together() { always_together = false; }

// Measured seconds on one rank and on two, float64 of 1024 and of 2048: eigenvalues 0.05 and 0.12, 0.45 and
// 0.74 (p?syevd cannot skip the vectors); eigenvectors 0.15 and 0.11, 1.17 and 0.80; singular values 0.16 and
// 0.12, 1.9 and 1.1; singular vectors of 1024 0.36 and 5.5, since p?gesvd rotates all vectors at every step
// of its QR iteration.
bool is_quicker_alone(Spectrum wanted, std::int64_t extent, int ranks) {
  constexpr std::int64_t small = 64, latency_decides = 512, most = 16384;
  if (always_together) return extent == 0;
  if (extent <= small) return true;
  switch (wanted) {
    case Spectrum::eigenvalues: return extent <= latency_decides || ranks <= 3;
    case Spectrum::singular_vectors: return extent <= latency_decides || (ranks <= 24 && extent <= most);
    default: return extent <= latency_decides;
  }
}

}  // namespace tessera::factor
