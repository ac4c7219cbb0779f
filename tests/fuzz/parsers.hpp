// The parsers, each as one function: any bytes in, done or an error of its kind out. Shared by the seeded
// mutator (fuzz_test.cpp) and by libFuzzer (libfuzzer.cpp).
#pragma once
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::test {

struct Parser {
  std::string name;
  std::vector<std::string> seeds;  // whole and right, from which mutants are made
  std::vector<std::string> words;  // pieces that mean something to it
  // Throws std::logic_error where a right answer breaks a promise: a shape whose bytes do not fit 64 bits.
  // Another exception than the parser's errors is a finding too. True: the input was accepted.
  std::function<bool(std::string_view)> parse;
};
const std::vector<Parser>& parsers();     // all of them
std::vector<Parser> container_parsers();  // containers.cpp
std::vector<Parser> store_parsers();      // stores.cpp
std::vector<Parser> sentence_parsers();   // sentences.cpp
inline void PrintTo(const Parser& parser, std::ostream* out) { *out << parser.name; }

}  // namespace tessera::test
