// Which of OpenBLAS's kernels a rank uses.
#pragma once
#include <string>
#include <string_view>

namespace tessera::kernels {

// OpenBLAS chooses its kernels once, by the CPU's model. A release that is older than the CPU does not know
// the model and takes those of 2004, which know SSE3 alone: Debian 12's on an Emerald Rapids Xeon multiplies
// at a fifth of the rate. Has it choose again, by what the CPU can do, where that happened and
// OPENBLAS_CORETYPE does not say otherwise. Before the first call of BLAS. Returns the name of the kernels
// chosen, or "" where nothing was changed or BLAS is another.
std::string retarget_blas();

// What decides the last bits of a rank's arithmetic: "AVX-512, OpenBLAS for SkylakeX".
std::string cpu_text();

// The kernels to take instead of `chosen`, or "": pure.
struct CpuFeatures {
  bool avx2 = false, avx512 = false, avx512_bf16 = false, is_amd = false;
};
std::string_view better_blas_target(std::string_view chosen, CpuFeatures cpu);

}  // namespace tessera::kernels
