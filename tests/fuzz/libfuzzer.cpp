// scripts/fuzz NAME: runs libFuzzer on one of the parsers, the one in TESSERA_TEST_PARSER.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "fuzz/mutator.hpp"
#include "fuzz/parsers.hpp"

namespace {
const tessera::test::Parser& parser() {
  static const tessera::test::Parser& found = []() -> const tessera::test::Parser& {
    const char* name = std::getenv("TESSERA_TEST_PARSER");
    for (const auto& one : tessera::test::parsers())
      if (name != nullptr && one.name == name) return one;
    std::abort();
  }();
  return found;
}
}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t bytes, std::size_t most);

// Every fourth mutation uses our mutator, which knows complete inputs and the parser's words.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t bytes, std::size_t most,
                                               unsigned int number) {
  if (number % 4 != 0) return LLVMFuzzerMutate(data, bytes, most);
  auto seeds = parser().seeds;
  seeds.insert(seeds.end(), seeds.size() + 1, {reinterpret_cast<const char*>(data), bytes});
  const auto text = tessera::test::Mutator(number).mutant(seeds, parser().words);
  const auto size = std::min(text.size(), most);
  std::memcpy(data, text.data(), size);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  parser().parse({reinterpret_cast<const char*>(data), bytes});
  return 0;
}
