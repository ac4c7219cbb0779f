// Programs in StableHLO text.
#include <tessera/error.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "fuzz/accepts.hpp"
#include "fuzz/parsers.hpp"
#include "stablehlo/text/syntax.hpp"
#include "support/data.hpp"
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

std::string text_of(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

std::vector<Parser> program_parsers() {
  Parser parser{"stablehlo", {}, {}, parse_program};
  for (const char* name : {"mlp_step", "newton", "branches", "layouts", "shard_map", "exported_program",
                           "argument_layouts", "bools", "real_transforms"})
    parser.seeds.push_back(
        text_of(tests_folder() / "stablehlo" / "golden" / (std::string(name) + ".stablehlo")));
  parser.words = {"%0",
                  "%arg0",
                  "#0",
                  ":",
                  "->",
                  "tensor<",
                  "xf32>",
                  "x9223372036854775807xf32>",
                  "dense<",
                  "\"0x",
                  "[",
                  "]",
                  "{",
                  "}",
                  "(",
                  ")",
                  "<",
                  ">",
                  "loc(",
                  "{-#",
                  "#-}",
                  "^bb0(",
                  "\x1b[2J",
                  "@\"",
                  "array<i64: ",
                  "stablehlo.while(",
                  "stablehlo.reduce(",
                  "sdy.mesh @m = <[\"x\"=2]>",
                  "return",
                  "dense_resource<a>",
                  "= ",
                  "-"};
  return {parser};
}

}  // namespace tessera::test
