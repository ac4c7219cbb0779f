// Python's format specifications: the expected texts are those of Python 3.11's format().
#include <gtest/gtest.h>

#include "base/text/format_spec.hpp"

namespace tessera {
namespace {

template <class T> std::string written(const char* spec, T value) {
  const auto parsed = parse_format_spec(spec);
  if (!parsed) return "no format";
  return formatted(*parsed, value).value_or("not possible");
}

TEST(FormatSpec, numbers_of_floating_point) {
  EXPECT_EQ(written(".4f", 3.14159265), "3.1416");
  EXPECT_EQ(written("10.3e", -12345.678), "-1.235e+04");
  EXPECT_EQ(written("+.1f", 2.25), "+2.2");
  EXPECT_EQ(written(" .1f", 2.25), " 2.2");
  EXPECT_EQ(written("08.3f", -3.14159), "-003.142");
  EXPECT_EQ(written("<8.2f", 1.5), "1.50    ");
  EXPECT_EQ(written("^9.2f", 1.5), "  1.50   ");
  EXPECT_EQ(written("*=9.2f", -1.5), "-****1.50");
  EXPECT_EQ(written(".2%", 0.12345), "12.35%");
  EXPECT_EQ(written("g", 1e20), "1e+20");
  EXPECT_EQ(written(".3f", -0.0), "-0.000");
  EXPECT_EQ(written("5.1f", std::numeric_limits<double>::infinity()), "  inf");
  EXPECT_EQ(written(".1f", std::numeric_limits<double>::quiet_NaN()), "nan");
}
TEST(FormatSpec, whole_numbers) {
  EXPECT_EQ(written(">8", std::int64_t{42}), "      42");
  EXPECT_EQ(written("05d", std::int64_t{-42}), "-0042");
  EXPECT_EQ(written("#x", std::int64_t{255}), "0xff");
  EXPECT_EQ(written("X", std::uint64_t{48879}), "BEEF");
  EXPECT_EQ(written("b", std::int64_t{5}), "101");
  EXPECT_EQ(written("o", std::int64_t{8}), "10");
  EXPECT_EQ(written(".1f", std::int64_t{3}), "3.0");
  EXPECT_EQ(written("d", std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(written("d", std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
}
TEST(FormatSpec, texts) {
  EXPECT_EQ(written(">6", std::string_view("ab")), "    ab");
  EXPECT_EQ(written("6", std::string_view("ab")), "ab    ");
  EXPECT_EQ(written("·^6", std::string_view("ab")), "··ab··");
  EXPECT_EQ(written(".2s", std::string_view("äöü")), "äö");
  EXPECT_EQ(written(">4", std::string_view("äö")), "  äö");
}
TEST(FormatSpec, what_is_none) {
  for (const char* spec : {"q", ".", ".f", "1001", ".1001f", "5.2fx", "<<<", "}"})
    EXPECT_FALSE(parse_format_spec(spec)) << spec;
}
TEST(FormatSpec, what_a_value_cannot_have) {
  EXPECT_EQ(written("x", 1.5), "not possible");
  EXPECT_EQ(written("d", 1.5), "not possible");
  EXPECT_EQ(written(".2", std::int64_t{1}), "not possible");
  EXPECT_EQ(written("d", std::string_view("a")), "not possible");
  EXPECT_EQ(written("s", std::int64_t{1}), "not possible");
  EXPECT_EQ(written("=6", std::string_view("a")), "not possible");
}

}  // namespace
}  // namespace tessera
