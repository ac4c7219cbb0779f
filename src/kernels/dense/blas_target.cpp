#include "kernels/dense/blas_target.hpp"

#include <hwy/targets.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>

// Functions of OpenBLAS builds with DYNAMIC_ARCH; weak, because other BLAS libraries lack them.
extern "C" {
char* openblas_get_corename() __attribute__((weak));
void gotoblas_dynamic_init() __attribute__((weak));
void gotoblas_dynamic_quit() __attribute__((weak));
}

namespace tessera::kernels {
namespace {

// The kernels that OpenBLAS selects for an unknown CPU model, and those for CPUs without AVX.
constexpr std::array before_avx = {"Prescott", "Core2",   "Penryn",       "Dunnington", "Nehalem",
                                   "Athlon",   "Opteron", "Opteron_SSE3", "Barcelona",  "Bobcat",
                                   "Atom",     "Katmai",  "Coppermine",   "Northwood",  "Banias",
                                   "Nano",     "Unknown", "unknown"};

constexpr const char* blas_setting = "OPENBLAS_CORETYPE";

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

bool blas_can_follow() {
  return openblas_get_corename != nullptr && gotoblas_dynamic_init != nullptr &&
         gotoblas_dynamic_quit != nullptr && std::getenv(blas_setting) == nullptr;
}

void choose_blas_again(const std::string& target) {
  setenv(blas_setting, target.c_str(), 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  unsetenv(blas_setting);  // programs that this one starts decide for themselves
}

std::string blas_name() { return openblas_get_corename != nullptr ? openblas_get_corename() : ""; }

// Highway's targets: the better one has the lower bit.
Vectors vectors_in_use() {
#if defined(__x86_64__)
  const auto targets = hwy::SupportedTargets();
  if ((targets & (HWY_AVX3 | (HWY_AVX3 - 1))) != 0) return Vectors::avx512;
  if ((targets & HWY_AVX2) != 0) return Vectors::avx2;
#endif
  return Vectors::baseline;
}

// For BLAS on CPUs of several types: kernels that all of them can run.
const char* common_blas(Vectors vectors) {
  switch (vectors) {
    case Vectors::avx512: return "SkylakeX";
    case Vectors::avx2: return "Haswell";
    case Vectors::baseline: break;
  }
  return "Prescott";
}

}  // namespace

std::string OwnKernels::text() const {
  return std::to_string(static_cast<int>(vectors)) + (can_follow ? " 1 " : " 0 ") + blas;
}

OwnKernels OwnKernels::from(const std::string& text) {
  std::istringstream stream(text);
  int vectors = 0;
  OwnKernels kernels;
  stream >> vectors >> kernels.can_follow >> kernels.blas;
  kernels.vectors = static_cast<Vectors>(vectors);
  return kernels;
}

OwnKernels own_kernels() { return {vectors_in_use(), blas_name(), blas_can_follow()}; }

OwnKernels common_kernels(std::span<const OwnKernels> by_rank) {
  OwnKernels common = by_rank[0];
  bool are_alike = true;
  for (const auto& one : by_rank) {
    common.vectors = std::min(common.vectors, one.vectors);
    common.can_follow = common.can_follow && one.can_follow;
    are_alike = are_alike && one.blas == common.blas;
  }
  common.blas = are_alike || !common.can_follow ? "" : common_blas(common.vectors);
  return common;
}

void use_kernels([[maybe_unused]] Vectors most, const std::string& blas) {
#if defined(__x86_64__)
  if (most < vectors_in_use()) {
    hwy::DisableTargets((most == Vectors::avx2 ? HWY_AVX2 : HWY_STATIC_TARGET) - 1);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
#endif
  if (!blas.empty() && blas != blas_name()) choose_blas_again(blas);
}

void limit_kernels(const std::string& to) {
  if (to.empty()) return;
  const Vectors most = to == "avx2" ? Vectors::avx2 : Vectors::baseline;
  if (most < vectors_in_use()) use_kernels(most, blas_can_follow() ? common_blas(most) : "");
}

std::string_view better_blas_target(std::string_view chosen, CpuFeatures cpu) {
  if (std::find(before_avx.begin(), before_avx.end(), chosen) == before_avx.end()) return "";
  if (cpu.avx512_bf16) return "Cooperlake";
  if (cpu.avx512) return "SkylakeX";
  if (cpu.avx2) return cpu.is_amd ? "Zen" : "Haswell";
  return "";
}

std::string retarget_blas() {
  if (!blas_can_follow()) return "";
  const std::string target(better_blas_target(blas_name(), features()));
  if (target.empty()) return "";
  choose_blas_again(target);
  return blas_name();
}

std::string cpu_text() {
  constexpr const char* names[] = {"baseline vectors", "AVX2", "AVX-512"};
  const std::string vectors = names[static_cast<int>(vectors_in_use())], core = blas_name();
  return core.empty() ? vectors : vectors + ", OpenBLAS for " + core;
}

}  // namespace tessera::kernels
