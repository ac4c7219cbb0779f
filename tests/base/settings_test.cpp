#include "base/settings.hpp"
#include "support/errors.hpp"

#include <gmock/gmock.h>
#include <unistd.h>
#include <tessera/error.hpp>

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <tuple>

namespace tessera {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& name, const std::string& value) {
  return test::error_or<ArgumentError>("", [&] { const SettingScope scope(name, value); });
}

TEST(Settings, defaults_hold_when_nothing_is_set) {
  EXPECT_EQ(settings().check, 1);
  EXPECT_EQ(settings().timeout_s, 300);
  EXPECT_EQ(settings().message_limit, std::int64_t{1} << 30);
}

TEST(Settings, a_scope_sets_and_puts_back) {
  {
    const SettingScope scope("TESSERA_MESSAGE_LIMIT", "1000");
    EXPECT_EQ(settings().message_limit, 1000);
    const SettingScope inner("TESSERA_LOG", "debug");
    EXPECT_EQ(settings().log, LogLevel::debug);
    EXPECT_EQ(settings().message_limit, 1000);
  }
  EXPECT_EQ(settings().message_limit, std::int64_t{1} << 30);
  EXPECT_EQ(settings().log, LogLevel::warn);
}

TEST(Settings, a_message_holds_an_element_at_least) {
  for (const char* text : {"1", "5", "16"}) {
    const SettingScope scope("TESSERA_MESSAGE_LIMIT", text);
    EXPECT_EQ(settings().message_limit, 16) << text;
  }
}

TEST(Settings, bad_values_are_refused_with_what_would_do) {
  EXPECT_EQ(error_of("TESSERA_TIMEOUT", "soon"),
            "TESSERA_TIMEOUT='soon' is not usable: it takes seconds, 0 or more");
  EXPECT_THAT(error_of("TESSERA_TIMEOUT", "-1"), HasSubstr("seconds, 0 or more"));
  EXPECT_THAT(error_of("TESSERA_TIMEOUT", "nan"), HasSubstr("seconds, 0 or more"));
  EXPECT_THAT(error_of("TESSERA_CHECK", "3"), HasSubstr("it takes 0 | 1 | 2"));
  EXPECT_THAT(error_of("TESSERA_LOG", "warning"), HasSubstr("did you mean 'warn'?"));
  for (const char* text : {"0", "-5", "2147483648", "99999999999999999999", "10x", "", " "})
    EXPECT_THAT(error_of("TESSERA_MESSAGE_LIMIT", text), HasSubstr("a number from 1 to 2147483647")) << text;
  EXPECT_THAT(error_of("TESSERA_MEM_LIMIT", " 64M"), HasSubstr("TESSERA_MEM_LIMIT=' 64M' is not usable"));
  EXPECT_THAT(error_of("TESSERA_TIMOUT", "1"),
              HasSubstr("no setting TESSERA_TIMOUT (did you mean 'TESSERA_TIMEOUT'?)"));
}

TEST(Settings, a_refused_value_changes_nothing) {
  EXPECT_NE(error_of("TESSERA_COLLECTIVES", "fast"), "");
  EXPECT_EQ(settings().collectives, "auto");
}

TEST(Settings, the_table_shows_every_setting) {
  const auto table = settings_table();
  ASSERT_GE(table.size(), 8u);
  for (const auto& row : table) {
    EXPECT_THAT(row.name, testing::StartsWith("TESSERA_"));
    EXPECT_FALSE(row.meaning.empty()) << row.name;
    EXPECT_TRUE(row.is_set || row.value == row.fallback) << row.name;
    EXPECT_EQ(error_of(row.name, row.fallback), "")
        << row.name << ": the printed default is one that may be set";
  }
}

TEST(Settings, unknown_variables_are_found) {
  setenv("TESSERA_TREADS", "2", 1);
  EXPECT_THAT(unknown_settings(), testing::ElementsAre("TESSERA_TREADS (did you mean 'TESSERA_THREADS'?)"));
  unsetenv("TESSERA_TREADS");
}

TEST(ParseBytes, takes_powers_of_1024) {
  EXPECT_EQ(parse_bytes("x", "12"), 12);
  EXPECT_EQ(parse_bytes("x", "64M"), 64 << 20);
  EXPECT_EQ(parse_bytes("x", "1.5G"), std::int64_t{3} << 29);
  EXPECT_EQ(parse_bytes("x", "2KiB"), 2048);
  for (const char* text : {"", "M", "12Q", "-1", "1e40", "9999999T"})
    EXPECT_THROW(parse_bytes("x", text), ArgumentError) << text;
}

// Makes a locale with a decimal comma, so that the machine need not have one.
class InCommaLocale : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("tessera-locale-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "source") << "LC_CTYPE\nupper (A)\nlower (a)\nEND LC_CTYPE\nLC_NUMERIC\n"
                                         "decimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\n"
                                         "END LC_NUMERIC\n";
    const auto command = "localedef -c -i " + (folder_ / "source").string() + " " +
                         (folder_ / "comma").string() + " >" + (folder_ / "words").string() + " 2>&1";
    std::ignore = std::system(command.c_str());
    setenv("LOCPATH", folder_.c_str(), 1);
    if (std::setlocale(LC_NUMERIC, "comma") == nullptr) GTEST_SKIP() << "localedef makes no locale here";
    ASSERT_NE(std::strtod("1.5", nullptr), 1.5);
  }
  void TearDown() override {
    std::setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
    std::filesystem::remove_all(folder_);
  }
  std::filesystem::path folder_;
};

TEST_F(InCommaLocale, numbers_are_read_as_everywhere) {
  EXPECT_EQ(parse_bytes("x", "1.5G"), std::int64_t{3} << 29);
  const SettingScope timeout("TESSERA_TIMEOUT", "1.5");
  EXPECT_EQ(settings().timeout_s, 1.5);
  EXPECT_THROW(parse_bytes("x", "1,5G"), ArgumentError);
}

}  // namespace
}  // namespace tessera
