// An error names the function that the user called and the line where: each row has a call that is refused,
// and its error cites the row. Lines of the library are never cited.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/error.hpp>

#include <map>
#include <regex>

#include "catalogue/samples.hpp"
#include "support/errors.hpp"

namespace tessera::test {
namespace {

std::vector<Row> rows_with_a_refusal() {
  std::vector<Row> found;
  for (const auto& row : rows())
    if (row.refused != nullptr) found.push_back(row);
  return found;
}

class Refused : public testing::TestWithParam<Row> {};
INSTANTIATE_TEST_SUITE_P(Rows, Refused, testing::ValuesIn(rows_with_a_refusal()), [](const auto& info) {
  return std::regex_replace(std::string(info.param.name), std::regex("[:.]+"), "_");
});

TEST_P(Refused, cites_the_users_line) {
  const Row& row = GetParam();
  const std::string text = error_of<Error>([&] { row.refused(); });
  EXPECT_THAT(text, testing::HasSubstr(" at " + std::string(row.file) + ":" + std::to_string(row.line)));
  static const std::regex site(R"(([A-Za-z_0-9]+\.(?:[ch]pp|tsv)):\d+)");
  for (std::sregex_iterator found(text.begin(), text.end(), site), end; found != end; ++found)
    EXPECT_EQ((*found)[1].str(), row.file) << text;
}

TEST_P(Refused, names_the_function) {
  const Row& row = GetParam();
  const std::string text = error_of<Error>([&] { row.refused(); });
  std::string name = std::regex_replace(std::string(row.name), std::regex(R"(^.*::|\..*$)"), "");
  static const std::map<std::string, std::string> other_names{
      {"at", "x.at"},          {"arctan2", "atan2"},  {"bitwise_count", "population_count"},
      {"einsum_of", "einsum"}, {"erfinv", "erf_inv"}, {"identity", "eye"},
      {"pow", "power"},        {"ravel", "reshape"}};
  if (const auto other = other_names.find(name); other != other_names.end()) name = other->second;
  EXPECT_THAT(text, testing::HasSubstr(name + " at " + row.file));
}

TEST(Refusals, are_many) { EXPECT_GT(rows_with_a_refusal().size(), 350U); }

}  // namespace
}  // namespace tessera::test
