// TESSERA_TEST_TARGET=avx2 or =baseline limits the tests to these instruction sets, TESSERA_THREADS sets the
// number of threads.
#include <gtest/gtest.h>

#include <hwy/highway.h>

#include <cstdlib>
#include <string>

#include "base/settings.hpp"
#include "kernels/threads.hpp"

namespace {

class Targets : public testing::Environment {
 public:
  void SetUp() override {
    if (tessera::settings().threads > 0) tessera::kernels::set_threads(tessera::settings().threads);
    const char* wanted = std::getenv("TESSERA_TEST_TARGET");
    if (wanted == nullptr) return;
    const std::string target = wanted;
    ASSERT_TRUE(target == "avx2" || target == "baseline") << "TESSERA_TEST_TARGET=" << target;
    if (target == "avx2" && (hwy::SupportedTargets() & HWY_AVX2) == 0)
      GTEST_SKIP() << "this machine has no AVX2";
    hwy::SetSupportedTargetsForTest(target == "avx2" ? HWY_AVX2 : HWY_STATIC_TARGET);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};
const testing::Environment* const targets = testing::AddGlobalTestEnvironment(new Targets);

}  // namespace
