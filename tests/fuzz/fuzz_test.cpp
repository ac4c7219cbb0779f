// Mutants of valid inputs: a parser accepts them or rejects them with an IoError, and has no other outcome.
// TESSERA_TEST_INPUTS sets the number per parser (20,000); TESSERA_TEST_FIRST the first mutant's number, by
// default from the date, so that each day tests others. The number is printed.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>

#include "fuzz/mutator.hpp"
#include "fuzz/parsers.hpp"
#include "support/data.hpp"
#include "support/watchdog.hpp"

namespace tessera::test {
namespace {

std::uint64_t number_in(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Example: 20261123000000 on that day (UTC).
std::uint64_t first_of_today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  const auto date = (parts.tm_year + 1900) * 10000 + (parts.tm_mon + 1) * 100 + parts.tm_mday;
  return static_cast<std::uint64_t>(date) * 1000000;
}

class Fuzz : public testing::TestWithParam<Parser> {};

TEST_P(Fuzz, mutants_are_accepted_or_refused) {
  const auto& parser = GetParam();
  const auto first = number_in("TESSERA_TEST_FIRST", first_of_today()),
             inputs = number_in("TESSERA_TEST_INPUTS", 20000);
  std::printf("TESSERA_TEST_FIRST=%llu\n", static_cast<unsigned long long>(first));
  std::uint64_t accepted = 0;
  for (auto number = first; number < first + inputs; ++number) {
    if (number % 5000 == 0) test_started("Fuzz", parser.name.c_str());  // resets the watchdog
    const auto input = Mutator(number).mutant(parser.seeds, parser.words);
    try {
      accepted += parser.parse(input) ? 1 : 0;
    } catch (const std::exception& error) {
      FAIL() << parser.name << " number " << number << ": " << error.what() << "\n" << input;
    }
  }
  // Some mutants must be accepted and some rejected, otherwise they test little.
  EXPECT_GT(accepted, inputs / 1000);
  EXPECT_LT(accepted, inputs);
  RecordProperty("accepted", std::to_string(accepted));
}

TEST_P(Fuzz, seeds_are_accepted) {
  for (const auto& seed : GetParam().seeds) EXPECT_TRUE(GetParam().parse(seed)) << seed;
}

// Inputs that caused findings stay in corpus/<parser>/.
TEST_P(Fuzz, the_corpus_is_accepted_or_refused) {
  const auto folder = tests_folder() / "fuzz/corpus" / GetParam().name;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string input{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NO_THROW(GetParam().parse(input)) << entry.path();
    ++files;
  }
  EXPECT_GT(files, 0);
}

INSTANTIATE_TEST_SUITE_P(Parsers, Fuzz, testing::ValuesIn(parsers()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tessera::test
