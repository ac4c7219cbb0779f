// FFTW's plans: one per job and alignment, made at the first call and kept.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>
#include <vector>

#include "kernels/fourier/fft.hpp"

namespace tessera::kernels {

// points: the loops that are transformed, the last one halved for r2c and c2r. batch: loops over transforms.
struct FftJob {
  FftKind kind;
  FftSign sign;
  std::vector<FftLoop> points, batch;
  FftPlanning planning = FftPlanning::measured;
};

// Runs the job from src to dst (the same memory: in place, for c2c with equal strides). src is kept.
// `repeats`: how often the caller will run it; a plan is measured at once for many repeats, at the second
// call for few. Thread-safe.
void run_fft_plan(Dtype complex, const FftJob&, void* src, void* dst, std::int64_t repeats);

}  // namespace tessera::kernels
