#include "ops/factor/two_stage/alone.hpp"

namespace tessera::factor {
namespace {
bool always_together = false;
}
Together::Together() { always_together = true; }
Together::~Together() { always_together = false; }

// Measured CPU seconds, float64, of one rank and of the busiest of two. Intel Xeon, AVX-512: eigenvectors of
// 1024 0.28 and 0.27, of 2048 2.0 and 1.3; eigenvalues of 1024 0.13 and 0.11, of 2048 1.1 and 0.63. EPYC
// family 25, AVX2: singular vectors of 512 0.11 and 0.09, of 1024 0.65 and 0.46, of 2048 5.6 and 3.1;
// singular values of 512 0.05 and 0.04, of 1024 0.32 and 0.16, of 2048 3.2 and 0.88. Below 512 the messages
// take longer.
bool is_quicker_alone(Spectrum wanted, std::int64_t extent, int ranks) {
  constexpr std::int64_t small = 64, latency_decides = 512, chase_decides = 1024;
  if (always_together) return extent == 0;
  if (extent <= small) return true;
  switch (wanted) {
    case Spectrum::eigenvalues: return extent <= chase_decides;
    case Spectrum::eigenvectors: return extent <= (ranks == 2 ? chase_decides : latency_decides);
    default: return extent <= latency_decides;
  }
}

}  // namespace tessera::factor
