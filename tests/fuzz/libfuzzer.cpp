// scripts/fuzz NAME: libFuzzer on one of the parsers, the name in TESSERA_TEST_PARSER.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fuzz/parsers.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  static const tessera::test::Parser& parser = []() -> const tessera::test::Parser& {
    const char* name = std::getenv("TESSERA_TEST_PARSER");
    for (const auto& one : tessera::test::parsers())
      if (name != nullptr && one.name == name) return one;
    std::abort();
  }();
  parser.parse({reinterpret_cast<const char*>(data), bytes});
  return 0;
}
