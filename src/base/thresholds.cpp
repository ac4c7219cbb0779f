#include "base/thresholds.hpp"

#include <cstdlib>

namespace tessera::detail {
namespace {

std::int64_t divisor_of_environment() {
  const char* text = std::getenv("TESSERA_TEST_THRESHOLDS");
  return text == nullptr ? 1 : std::max<std::int64_t>(1, std::atoll(text));
}

}  // namespace

std::atomic<std::int64_t> threshold_divisor{divisor_of_environment()};

}  // namespace tessera::detail
