// The texts of programs cite the user's lines: of every sample of every op, forwards and backwards, no line
// of the library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/tessera.hpp>

#include <regex>
#include <set>

#include "catalogue/samples.hpp"

namespace tessera {
namespace {

using test::Sample;

std::set<std::string> files_in(const std::string& text) {
  static const std::regex site(R"(([A-Za-z_0-9]+\.(?:[ch]pp|tsv)):\d+)");
  std::set<std::string> files;
  for (std::sregex_iterator found(text.begin(), text.end(), site), end; found != end; ++found)
    files.insert((*found)[1].str());
  return files;
}

void expect_users_files(const Sample& sample, const std::string& text) {
  for (const auto& file : files_in(text))
    EXPECT_TRUE(file == sample.file || file.starts_with("calls.") || file == "samples.cpp" ||
                file == "program_text_test.cpp")
        << text;
  EXPECT_THAT(text, testing::Not(testing::HasSubstr(" :0")));
}

class ProgramText : public testing::TestWithParam<Sample> {};
INSTANTIATE_TEST_SUITE_P(Rows, ProgramText, testing::ValuesIn(test::samples_without("jit:no")),
                         [](const auto& info) { return info.param.name; });

TEST_P(ProgramText, cites_the_lines_of_the_samples) {
  if (GetParam().has("lines:no")) return;
  const auto call = GetParam().call;
  const auto lowered =
      jit([call](std::vector<Array> x) { return call(x); }).lower(operands_of(GetParam(), 1));
  expect_users_files(GetParam(), lowered.as_text());
  const auto compiled = lowered.compile();
  expect_users_files(GetParam(), compiled.as_text());
  expect_users_files(GetParam(), to_string(compiled.explanation()));
}

TEST_P(ProgramText, of_the_gradient_too) {
  if (GetParam().smooth == test::Smooth::no || GetParam().has("lines:no")) return;
  const auto call = GetParam().call;
  const auto total = [call](std::vector<Array> x) {
    Array sum_of_all = 0.0;
    for (const auto& y : call(x))
      if (is_inexact(y.dtype())) sum_of_all = sum_of_all + sum(real(y));
    return sum_of_all;
  };
  const auto text = [&] {
    const auto operands = operands_of(GetParam(), 1);
    for (const auto& x : operands)
      if (!is_inexact(x.dtype())) return std::string();
    return jit(grad(total)).lower(operands).compile().as_text();
  }();
  expect_users_files(GetParam(), text);
}

}  // namespace
}  // namespace tessera
