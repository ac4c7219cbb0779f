// An error names the function that the user called and the line where: each row has a call that is refused,
// and its error cites the row. Lines of the library are never cited.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/error.hpp>
#include <tessera/runtime.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "catalogue/samples.hpp"
#include "support/data.hpp"
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
      {"at", "x.at"},      {"arctan2", "atan2"}, {"einsum_of", "einsum"}, {"erfinv", "erf_inv"},
      {"identity", "eye"}, {"pow", "power"},     {"ravel", "reshape"}};
  if (const auto other = other_names.find(name); other != other_names.end()) name = other->second;
  EXPECT_THAT(text, testing::HasSubstr(name + " at " + row.file));
}

TEST(Refusals, are_many) { EXPECT_GT(rows_with_a_refusal().size(), 350U); }

// The error's type and text; a fixed "program.cpp:12" replaces the row's file and line.
std::string error_shown(const Row& row) {
  try {
    row.refused();
  } catch (const Error& error) {
    static const std::regex site(R"([A-Za-z_0-9]+\.tsv:\d+)");
    return std::string(error.kind()) + ": " + std::regex_replace(error.what(), site, "program.cpp:12");
  }
  return "no error";
}

// The site's reference shows these texts, so refusals.txt holds them, and a changed text appears in its diff.
// Errors about empty handles are left out: their text is the same everywhere.
TEST(Refusals, are_the_texts_that_are_kept) {
  const auto path = tests_folder() / "catalogue/refusals.txt";
  std::string found =
      "# By catalogue_test with WRITE_REFUSALS=1: rows of the catalogue and the errors of their refused "
      "calls.\n";
  for (const auto& row : rows_with_a_refusal())
    if (const auto text = error_shown(row); text.find("holds nothing") == text.npos)
      found += "\n" + std::string(row.name) + "\n" + text + "\n";
  if (std::getenv("WRITE_REFUSALS") != nullptr && process_index() == 0) std::ofstream(path) << found;
  std::ostringstream kept;
  kept << std::ifstream(path).rdbuf();
  if (kept.str() == found) return;
  std::istringstream before(kept.str()), now(found);
  for (std::string was, is; std::getline(now, is);) {
    std::getline(before, was);
    ASSERT_EQ(is, was) << "WRITE_REFUSALS=1 build/tests/catalogue_test writes refusals.txt anew";
  }
}

}  // namespace
}  // namespace tessera::test
