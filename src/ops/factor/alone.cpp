#include "ops/factor/alone.hpp"

namespace tessera::factor {
namespace {
bool always_together = false;
}
Together::Together() { always_together = true; }
Together::~Together() { always_together = false; }

// Measured CPU seconds, float64, of one rank and of the busiest of two (Intel Xeon, AVX-512): eigenvectors of
// 1024 0.28 and 0.27, of 2048 2.0 and 1.3; eigenvalues of 1024 0.13 and 0.11, of 2048 1.1 and 0.63. By
// ScaLAPACK (EPYC family 26): singular values 0.16 and 0.12, 1.9 and 1.1; singular vectors of 1024 0.36
// and 5.5, since p?gesvd rotates all vectors at every step of its QR iteration.
bool is_quicker_alone(Spectrum wanted, std::int64_t extent, int ranks) {
  constexpr std::int64_t small = 64, latency_decides = 512, chase_decides = 1024, most = 16384;
  if (always_together) return extent == 0;
  if (extent <= small) return true;
  switch (wanted) {
    case Spectrum::eigenvalues: return extent <= chase_decides;
    case Spectrum::eigenvectors: return extent <= (ranks == 2 ? chase_decides : latency_decides);
    case Spectrum::singular_vectors: return extent <= latency_decides || (ranks <= 24 && extent <= most);
    default: return extent <= latency_decides;
  }
}

}  // namespace tessera::factor
