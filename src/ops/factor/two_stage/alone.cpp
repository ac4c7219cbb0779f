#include "ops/factor/two_stage/alone.hpp"

namespace tessera::factor {
namespace {
bool always_together = false;
}
Together::Together() { always_together = true; }
Together::~Together() { always_together = false; }

// Measured CPU seconds, float64. EPYC family 26, AVX-512, one core by LAPACK and in two stages: eigenvectors
// of 512 0.025 and 0.019, of 1024 0.157 and 0.109. EPYC family 25, AVX2, one rank by LAPACK and the busiest
// of two: singular vectors of 512 0.11 and 0.09, of 1024 0.65 and 0.46; singular values of 512 0.05 and 0.04,
// of 1024 0.32 and 0.16. Up to 512 the messages take longer than what is saved.
bool is_quicker_alone(std::int64_t extent) {
  constexpr std::int64_t latency_decides = 512;
  return extent <= (always_together ? 0 : latency_decides);
}

}  // namespace tessera::factor
