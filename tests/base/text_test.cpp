#include "base/text.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/hash.hpp"

namespace tessera {
namespace {

TEST(Text, bytes_have_units) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(std::int64_t{37} << 30), "37.0 GiB");
  EXPECT_EQ(format_bytes(std::int64_t{200} << 20), "200 MiB");
}

TEST(Text, a_quoted_name_shows_what_a_terminal_would_act_on) {
  EXPECT_EQ(in_quotes("a b/ü€𝄞.npy"), "'a b/ü€𝄞.npy'");
  EXPECT_EQ(in_quotes("x\x1b[2J\n\r\t\x7f"), "'x\\x1b[2J\\x0a\\x0d\\x09\\x7f'");
  EXPECT_EQ(in_quotes(std::string_view("a\0b", 3)), "'a\\x00b'");
  EXPECT_EQ(in_quotes("\xc2\x9b"
                      "2J"),
            "'\\xc2\\x9b2J'");                                // a control character in two bytes
  EXPECT_EQ(in_quotes("\xe2\x80\xae"), "'\\xe2\\x80\\xae'");  // reverses the direction of text
  EXPECT_EQ(in_quotes("\xff\xc0\xaf\xe2\x82"), "'\\xff\\xc0\\xaf\\xe2\\x82'");  // invalid UTF-8
}

TEST(Text, ids_are_gathered_into_ranges) {
  EXPECT_EQ(format_ids({}), "");
  EXPECT_EQ(format_ids({3}), "3");
  EXPECT_EQ(format_ids({0, 1}), "0, 1");
  EXPECT_EQ(format_ids({0, 1, 2, 5, 7, 8, 9}), "0-2, 5, 7-9");
  EXPECT_EQ(format_ids({3, 2, 1}), "3, 2, 1");
}

TEST(Text, a_near_word_is_suggested_and_a_far_one_is_not) {
  const std::vector<std::string> known = {"float32", "float64", "int8"};
  EXPECT_EQ(did_you_mean("flaot32", known), " (did you mean 'float32'?)");
  EXPECT_EQ(did_you_mean("quaternion", known), "");
}

TEST(Text, a_call_site_is_file_and_line) {
  const auto here = std::source_location::current();
  EXPECT_EQ(format_site(here), "text_test.cpp:" + std::to_string(here.line()));
}

TEST(Text, counts_have_plurals) {
  EXPECT_EQ(format_count(1, "rank"), "1 rank");
  EXPECT_EQ(format_count(0, "rank"), "0 ranks");
}

TEST(Hash, every_part_and_their_order_count) {
  std::set<std::uint64_t> seen;
  seen.insert(Hasher().add(1).add(2).value());
  seen.insert(Hasher().add(2).add(1).value());
  seen.insert(Hasher().add(1).value());
  seen.insert(Hasher().add("12").value());
  seen.insert(Hasher().add("1").add("2").value());
  seen.insert(Hasher().add_range(std::vector<int>{1, 2}).value());
  seen.insert(Hasher().add_range(std::vector<int>{1}).add(2).value());
  seen.insert(Hasher().add(0.0).value());
  seen.insert(Hasher().add(-0.0).value());
  EXPECT_EQ(seen.size(), 9u);
  EXPECT_EQ(Hasher().add("abc").add(7).value(), Hasher().add(std::string("abc")).add(7).value());
}

TEST(Hash, bytes_of_every_length_differ) {
  const std::string zeros(40, '\0');
  std::set<std::uint64_t> seen;
  for (std::size_t n = 0; n <= zeros.size(); ++n) seen.insert(hash_bytes(zeros.data(), n));
  EXPECT_EQ(seen.size(), zeros.size() + 1);
}

}  // namespace
}  // namespace tessera
