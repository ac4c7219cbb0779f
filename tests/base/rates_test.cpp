#include "base/rates.hpp"

#include <gtest/gtest.h>
#include <tessera/error.hpp>

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
TEST(Rates, weigh_arithmetic_against_the_link_inside_a_host) {
  EXPECT_DOUBLE_EQ(Rates{}.flops_per_moved_byte(), 5);
}

}  // namespace
}  // namespace tessera
