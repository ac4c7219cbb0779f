// The parsers, each as one function: it takes any bytes and either succeeds or raises its error. Shared by
// the seeded mutator (fuzz_test.cpp) and libFuzzer (libfuzzer.cpp).
#pragma once
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::test {

struct Parser {
  std::string name;
  std::vector<std::string> seeds;  // complete valid inputs, from which mutants are made
  std::vector<std::string> words;  // tokens that the parser knows
  // Throws std::logic_error if an accepted input breaks a guarantee: a shape whose bytes do not fit 64 bits.
  // Any exception besides the parser's errors is a finding too. Returns true if the input was accepted.
  std::function<bool(std::string_view)> parse;
};
const std::vector<Parser>& parsers();     // all of them
std::vector<Parser> container_parsers();  // containers.cpp
std::vector<Parser> store_parsers();      // stores.cpp
std::vector<Parser> program_parsers();    // programs.cpp
std::vector<Parser> sentence_parsers();   // sentences.cpp
inline void PrintTo(const Parser& parser, std::ostream* out) { *out << parser.name; }

}  // namespace tessera::test
