#include "kernels/dense/blas_target.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

extern "C" char* openblas_get_corename() __attribute__((weak));

namespace tessera::kernels {
namespace {

const CpuFeatures avx2{true, false, false, false}, avx512{true, true, false, false},
    with_bf16{true, true, true, false}, zen{true, false, false, true};

TEST(BlasTarget, a_model_that_the_library_does_not_know_gets_what_the_cpu_can_do) {
  EXPECT_EQ(better_blas_target("Prescott", with_bf16), "Cooperlake");
  EXPECT_EQ(better_blas_target("Prescott", avx512), "SkylakeX");
  EXPECT_EQ(better_blas_target("Prescott", avx2), "Haswell");
  EXPECT_EQ(better_blas_target("Opteron_SSE3", zen), "Zen");
}

TEST(BlasTarget, what_the_library_chose_for_a_known_model_stays) {
  EXPECT_EQ(better_blas_target("Haswell", with_bf16), "");
  EXPECT_EQ(better_blas_target("SkylakeX", with_bf16), "");
  EXPECT_EQ(better_blas_target("Prescott", CpuFeatures{}), "") << "a CPU without AVX2";
}

TEST(BlasTarget, is_set_once_the_runtime_is_up) {
  if (openblas_get_corename == nullptr) GTEST_SKIP() << "another BLAS than OpenBLAS";
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr) GTEST_SKIP() << "OPENBLAS_CORETYPE is set";
  EXPECT_EQ(retarget_blas(), "") << "the runtime has done it";
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    EXPECT_NE(std::string(openblas_get_corename()), "Prescott");
  }
#endif
}

TEST(CommonKernels, are_those_of_the_weakest) {
  const OwnKernels wide{Vectors::avx512, "SkylakeX", true}, narrow{Vectors::avx2, "Zen", true},
      old{Vectors::baseline, "Nehalem", true}, told{Vectors::avx2, "Zen", false};
  const auto common = [](std::vector<OwnKernels> ranks) { return common_kernels(ranks); };
  EXPECT_EQ(common({wide, wide}).blas, "") << "alike";
  EXPECT_EQ(common({wide, wide}).vectors, Vectors::avx512);
  EXPECT_EQ(common({wide, narrow, wide}).blas, "Haswell");
  EXPECT_EQ(common({wide, narrow, wide}).vectors, Vectors::avx2);
  EXPECT_EQ(common({wide, narrow, old}).blas, "Prescott");
  EXPECT_EQ(common({wide, told}).blas, "") << "OPENBLAS_CORETYPE decides";
  EXPECT_EQ(common({wide, told}).vectors, Vectors::avx2);
  for (const auto& one : {wide, told, OwnKernels{}}) {
    const auto read = OwnKernels::from(one.text());
    EXPECT_EQ(read.vectors, one.vectors);
    EXPECT_EQ(read.blas, one.blas);
    EXPECT_EQ(read.can_follow, one.can_follow);
  }
}

}  // namespace
}  // namespace tessera::kernels
