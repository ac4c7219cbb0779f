#include "kernels/dense/blas_target.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

// Functions of OpenBLAS built for many CPUs; another BLAS has none of them.
extern "C" {
char* openblas_get_corename() __attribute__((weak));
void gotoblas_dynamic_init() __attribute__((weak));
void gotoblas_dynamic_quit() __attribute__((weak));
}

namespace tessera::kernels {
namespace {

// The kernels that OpenBLAS takes for a model that it does not know, and those for CPUs without AVX.
constexpr std::array before_avx = {"Prescott", "Core2",   "Penryn",       "Dunnington", "Nehalem",
                                   "Athlon",   "Opteron", "Opteron_SSE3", "Barcelona",  "Bobcat",
                                   "Atom",     "Katmai",  "Coppermine",   "Northwood",  "Banias",
                                   "Nano",     "Unknown", "unknown"};

CpuFeatures features() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return {avx2, avx512, avx512 && __builtin_cpu_supports("avx512bf16") != 0, __builtin_cpu_is("amd") != 0};
#else
  return {};
#endif
}

}  // namespace

std::string_view better_blas_target(std::string_view chosen, CpuFeatures cpu) {
  if (std::find(before_avx.begin(), before_avx.end(), chosen) == before_avx.end()) return "";
  if (cpu.avx512_bf16) return "Cooperlake";
  if (cpu.avx512) return "SkylakeX";
  if (cpu.avx2) return cpu.is_amd ? "Zen" : "Haswell";
  return "";
}

std::string retarget_blas() {
  constexpr const char* name = "OPENBLAS_CORETYPE";
  if (openblas_get_corename == nullptr || gotoblas_dynamic_init == nullptr ||
      gotoblas_dynamic_quit == nullptr || std::getenv(name) != nullptr)
    return "";
  const std::string before = openblas_get_corename();
  const std::string target(better_blas_target(before, features()));
  if (target.empty()) return "";
  setenv(name, target.c_str(), 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  unsetenv(name);  // programs that this one starts decide for themselves
  return openblas_get_corename();
}

std::string cpu_text() {
  const auto cpu = features();
  const std::string vectors = cpu.avx512 ? "AVX-512" : cpu.avx2 ? "AVX2" : "baseline vectors";
  const std::string core = openblas_get_corename != nullptr ? openblas_get_corename() : "";
  return core.empty() ? vectors : vectors + ", OpenBLAS for " + core;
}

}  // namespace tessera::kernels
