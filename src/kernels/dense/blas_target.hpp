// The kernels that a rank uses: its vectors, and OpenBLAS's.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace tessera::kernels {

// Makes OpenBLAS choose its kernels again. OpenBLAS chooses once, by CPU model: a release older than the CPU
// does not know the model and falls back to kernels of 2004 that use SSE3 only. Debian 12's on an Emerald
// Rapids Xeon multiplies at a fifth of the rate. If that happened and OPENBLAS_CORETYPE is not set, the
// kernels are chosen by CPU features. Must precede the first call of BLAS. Returns the name of the new
// kernels, or "" if nothing was changed or the BLAS is not OpenBLAS.
std::string retarget_blas();

// The CPU features that determine the last bits of results: "AVX-512, OpenBLAS for SkylakeX".
std::string cpu_text();

// Vectors of another width and other kernels of BLAS round sums differently. A job on hosts of several CPU
// types uses the kernels of the weakest CPU:
//
//   rank 0   AVX-512, SkylakeX        rank 1   AVX2, Zen        both: AVX2, Haswell
enum class Vectors { baseline, avx2, avx512 };  // the weakest first
struct OwnKernels {
  Vectors vectors = Vectors::baseline;
  std::string blas;         // OpenBLAS's name for its kernels; "": another BLAS
  bool can_follow = false;  // OpenBLAS can be told to choose again, and OPENBLAS_CORETYPE is not set

  std::string text() const;
  static OwnKernels from(const std::string& text);
};
OwnKernels own_kernels();
// The kernels that all ranks use, chosen from the kernels of each; pure. blas "" means that each rank keeps
// its own, because they are equal already or because one rank cannot change.
OwnKernels common_kernels(std::span<const OwnKernels> by_rank);
// Must be called before the first kernel runs. Vectors can only become narrower.
void use_kernels(Vectors most, const std::string& blas);
// The limit of TESSERA_CPU: wider vectors than these are not used; "": no limit.
void limit_kernels(const std::string& to);

// The kernels to use instead of `chosen`, or "". A pure function.
struct CpuFeatures {
  bool avx2 = false, avx512 = false, avx512_bf16 = false, is_amd = false;
};
std::string_view better_blas_target(std::string_view chosen, CpuFeatures cpu);

}  // namespace tessera::kernels
