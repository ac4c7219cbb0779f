// Texts that are nearly right: refused with an error of the user's kind, or recorded; never a crash, an
// endless loop, or ranks that disagree.
#include <tessera/jit.hpp>

#include <cstdlib>
#include <random>

#include "fuzz/mutator.hpp"
#include "fuzz/words.hpp"
#include "golden.hpp"

namespace tessera::test {
namespace {

std::uint64_t count_of_mutants() {
  const char* asked = std::getenv("TESSERA_TEST_INPUTS");
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) / 5 : 4000;
}

// One change that leaves a text: another number, an operation of another name, operands exchanged.
std::string with_one_change(std::string text, std::uint64_t n) {
  std::mt19937_64 random(n);
  const auto after = [&](const std::string& what) { return text.find(what, random() % text.size()); };
  static const std::vector<std::string> names{"add",    "divide",  "maximum",   "and",        "tanh",
                                              "negate", "reshape", "transpose", "convert",    "reverse",
                                              "sort",   "slice",   "select",    "compare EQ,"};
  static const std::vector<std::string> numbers{"0", "1", "2", "3", "4", "5", "7", "-1", "64"};
  if (n % 3 == 0) {
    const auto at = after("stablehlo.");
    const auto end = at == std::string::npos ? at : text.find_first_of(" (\"", at);
    if (end != std::string::npos) text.replace(at + 10, end - at - 10, names[random() % names.size()]);
  } else if (n % 3 == 1) {
    const auto at = text.find_first_of("0123456789", random() % text.size());
    const auto end = text.find_first_not_of("0123456789", at);
    if (end != std::string::npos) text.replace(at, end - at, numbers[random() % numbers.size()]);
  } else {
    const auto at = after("%");
    const auto other = after("%");
    if (at == std::string::npos || other == std::string::npos) return text;
    const auto name = text.substr(other, text.find_first_of(" ,:)", other) - other);
    text.replace(at, text.find_first_of(" ,:)", at) - at, name);
  }
  return text;
}

// Whether the text was accepted. Recording follows every branch and loop; values are not computed.
bool records(const std::string& text) {
  const auto program = stablehlo::parse(text, "mutant", {.ignore_shardings = true});
  std::vector<Array> arguments;
  for (const auto& argument : program.arguments()) arguments.push_back(zeros(argument.shape, argument.dtype));
  if (arguments.empty()) return true;
  const auto lowered = jit(program).lower(arguments);
  return true;
}

TEST(StablehloMutants, are_recorded_or_refused_by_all_ranks_alike) {
  const auto words = stablehlo_words();
  std::vector<std::string> seeds;
  for (const auto& name : golden_names())
    if (auto text = golden_program(name).text; text.size() < 6000) seeds.push_back(std::move(text));
  std::uint64_t accepted = 0;
  for (std::uint64_t n = 0; n < count_of_mutants(); ++n) {
    const auto text =
        n % 2 == 0 ? Mutator(n).mutant(seeds, words) : with_one_change(seeds[n / 2 % seeds.size()], n / 2);
    try {
      accepted += records(text);
    } catch (const UserError& error) {
      const std::string said = error.what();
      EXPECT_LT(said.size(), 4000u) << "mutant " << n;
    } catch (const MemoryError&) {
    } catch (const std::exception& error) {
      ADD_FAILURE() << "mutant " << n << ": " << error.what() << "\n" << text;
      return;
    }
  }
  EXPECT_GT(accepted, count_of_mutants() / 50)
      << "hardly a mutant was valid: what is evaluated was not reached";
  EXPECT_LT(accepted, count_of_mutants());
}

}  // namespace
}  // namespace tessera::test
