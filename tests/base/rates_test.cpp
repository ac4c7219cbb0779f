#include "base/rates.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <tessera/error.hpp>

#include <filesystem>

#include "base/own_file.hpp"
#include "support/errors.hpp"

namespace tessera {
namespace {

TEST(Rates, are_read_as_they_were_written) {
  Rates r;
  r.inside = {3e-7, 1.25e10};
  r.flops_per_s = 1.2e11;
  r.memory_bytes_per_s = 3e10;
  r.has_inside = r.has_compute = true;
  EXPECT_EQ(parse_rates(rates_text(r), "a file"), r);
}
TEST(Rates, that_a_file_lacks_are_the_built_in_ones_and_not_measured) {
  const Rates r =
      parse_rates(R"({"flops_per_s": 5e10, "memory_bytes_per_s": 2e10, "note": "a cluster"})", "f");
  EXPECT_TRUE(r.has_compute);
  EXPECT_FALSE(r.has_inside);
  EXPECT_FALSE(r.has_between);
  EXPECT_EQ(r.between, Rates{}.between);
}
TEST(Rates, are_numbers_above_zero) {
  for (const char* text : {R"({"flops_per_s": 0})", R"({"latency_s": -1})", R"({"bytes_per_s": "fast"})",
                           R"({"host_latency_s": 1e999})"})
    EXPECT_THROW(parse_rates(text, "m.json"), ArgumentError) << text;
  EXPECT_EQ(test::error_of<ArgumentError>([] { parse_rates(R"({"latency_s": -1})", "m.json"); }),
            "m.json: latency_s is -1, and must be a number above 0");
  EXPECT_EQ(test::error_of<ArgumentError>([] { parse_rates("[]", "m.json"); }),
            "m.json holds no JSON object of rates");
}
TEST(Rates, that_no_machine_has_are_not_measured) {
  Rates r, built_in;
  r.inside = {199e-6, 1.1e8};
  r.flops_per_s = r.memory_bytes_per_s = 1.1e8;
  r.between = {0.5, 1e3};  // a slow network exists
  r.has_inside = r.has_compute = r.has_between = true;
  EXPECT_EQ(without_implausible(r), r);
  for (const Link poor : {Link{201e-6, 4e9}, Link{1e-6, 9e7}, Link{1e-6, 1e15}}) {
    Rates poisoned = r, expected = r;
    poisoned.inside = poor;
    expected.inside = built_in.inside;
    expected.has_inside = false;
    EXPECT_EQ(without_implausible(poisoned), expected);
  }
  for (double Rates::*rate : {&Rates::flops_per_s, &Rates::memory_bytes_per_s}) {
    Rates poisoned = r;
    poisoned.*rate = 9e7;
    EXPECT_FALSE(without_implausible(poisoned).has_compute);
    EXPECT_EQ(without_implausible(poisoned).flops_per_s, built_in.flops_per_s);
    EXPECT_EQ(without_implausible(poisoned).memory_bytes_per_s, built_in.memory_bytes_per_s);
  }
}
TEST(Rates, of_a_poisoned_file_are_measured_again) {
  std::string folder = (std::filesystem::temp_directory_path() / "tessera-rates-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/machine.json";
  EXPECT_EQ(kept_rates(path), Rates{}) << "no file";
  // A start on an overloaded machine once kept a latency of 4 ms.
  replace_own_file(path, R"({"flops_per_s": 5e10, "memory_bytes_per_s": 9e9, "latency_s": 4e-3,
                             "bytes_per_s": 2e9})");
  Rates expected;
  expected.flops_per_s = 5e10;
  expected.memory_bytes_per_s = 9e9;
  expected.has_compute = true;
  EXPECT_EQ(kept_rates(path), expected);
  replace_own_file(path, "{damaged");
  EXPECT_EQ(kept_rates(path), Rates{});
  std::filesystem::remove_all(folder);
}
TEST(Rates, of_ranks_that_share_cores_are_their_share) {
  Rates r;
  r.cache_bytes_per_s = 4e10;
  EXPECT_EQ(of_shared_cores(r, 0.5), r);
  const Rates shared = of_shared_cores(r, 4);
  EXPECT_DOUBLE_EQ(shared.flops_per_s, r.flops_per_s / 4);
  EXPECT_DOUBLE_EQ(shared.memory_bytes_per_s, r.memory_bytes_per_s / 4);
  EXPECT_DOUBLE_EQ(shared.cache_bytes_per_s, 1e10);
  EXPECT_DOUBLE_EQ(shared.inside.bytes_per_s, r.inside.bytes_per_s / 4);
  EXPECT_NEAR(shared.inside.latency_s, r.inside.latency_s + 6e-6, 1e-12);
  EXPECT_EQ(shared.between, r.between);
}
TEST(Rates, weigh_arithmetic_against_the_link_inside_a_host) {
  EXPECT_DOUBLE_EQ(Rates{}.flops_per_moved_byte(), 5);
}

}  // namespace
}  // namespace tessera
