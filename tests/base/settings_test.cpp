#include "base/settings.hpp"

#include <gmock/gmock.h>
#include <tessera/error.hpp>

#include <cstdlib>

namespace tessera {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& name, const std::string& value) {
  try {
    const SettingScope scope(name, value);
    return "";
  } catch (const ArgumentError& error) {
    return error.what();
  }
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

TEST(Settings, bad_values_are_refused_with_what_would_do) {
  EXPECT_EQ(error_of("TESSERA_TIMEOUT", "soon"),
            "TESSERA_TIMEOUT='soon' is not usable: it takes seconds, 0 or more");
  EXPECT_THAT(error_of("TESSERA_TIMEOUT", "-1"), HasSubstr("seconds, 0 or more"));
  EXPECT_THAT(error_of("TESSERA_TIMEOUT", "nan"), HasSubstr("seconds, 0 or more"));
  EXPECT_THAT(error_of("TESSERA_CHECK", "3"), HasSubstr("it takes 0 | 1 | 2"));
  EXPECT_THAT(error_of("TESSERA_LOG", "warning"), HasSubstr("did you mean 'warn'?"));
  for (const char* text : {"0", "-5", "2147483648", "99999999999999999999", "10x", "", " "})
    EXPECT_THAT(error_of("TESSERA_MESSAGE_LIMIT", text), HasSubstr("a number from 1 to 2147483647")) << text;
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
    EXPECT_EQ(row.value, row.fallback) << row.name;
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

}  // namespace
}  // namespace tessera
