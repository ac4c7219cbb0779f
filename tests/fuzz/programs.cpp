// Programs in StableHLO text.
#include <tessera/error.hpp>

#include "fuzz/accepts.hpp"
#include "fuzz/parsers.hpp"
#include "fuzz/words.hpp"
#include "stablehlo/text/syntax.hpp"
#include "support/data.hpp"
#include "support/text.hpp"
#include "types/checked.hpp"

namespace tessera::test {
namespace {

void check_region(const stablehlo::RegionText& region, std::size_t values) {
  require(!region.operations.empty(), "a region ends with a return");
  for (const auto& op : region.operations) {
    for (const auto* numbers : {&op.operands, &op.results})
      for (const int value : *numbers)
        require(value >= 0 && static_cast<std::size_t>(value) < values, "a value is one of the function's");
    for (const auto& inner : op.regions) check_region(inner, values);
  }
}

bool parse_program(std::string_view text) {
  static const std::string file = "program.stablehlo";
  return accepts<ArgumentError>([&] {
    const auto module = stablehlo::parse_module(file, text);
    for (const auto& [name, function] : module.functions) {
      check_region(function.body, function.values.size());
      for (const auto& type : function.values) checked_bytes(type.shape, type.dtype, "fuzz");
    }
  });
}

}  // namespace

std::vector<Parser> program_parsers() {
  Parser parser{"stablehlo", {}, stablehlo_words(), parse_program};
  for (const char* name : {"mlp_step", "newton", "branches", "layouts", "shard_map", "exported_program",
                           "argument_layouts", "bools", "real_transforms"})
    parser.seeds.push_back(
        text_of_file(tests_folder() / "stablehlo" / "golden" / (std::string(name) + ".stablehlo")));
  return {parser};
}

}  // namespace tessera::test
