// explain: arithmetic, many collectives, and names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/tessera.hpp>

#include <cmath>

namespace tessera::test {
namespace {

using testing::HasSubstr;
using testing::Not;

Mesh ranks() { return make_mesh({device_count()}, {"x"}); }
Array rows(const Array& x) { return device_put(x, ranks(), P("x")); }

TEST(Explain, counts_five_n_log_n_of_an_fft) {
  const std::int64_t n = 16 * device_count(), m = 32;
  const double points = static_cast<double>(n * m),
               expected = 5 * points * std::log2(points) / device_count();
  for (const Array& x : {astype(ones({n, m}), complex64), rows(astype(ones({n, m}), complex64))}) {
    const auto cost = explain([](const Array& a) { return fft::fft2(a); }, x).cost;
    const double own = x.is_committed() ? expected : expected * device_count();
    EXPECT_NEAR(cost.flops, own, 0.1 * own) << "what else is counted is small beside it";
  }
  const auto real = explain([](const Array& a) { return fft::rfft2(a); }, rows(ones({n, m}))).cost;
  EXPECT_NEAR(real.flops, expected / 2, 0.15 * expected);
}
TEST(Explain, names_what_the_user_called) {
  const Array x = rows(ones({8 * device_count(), 8}));
  const auto text = to_string(explain([](const Array& a) { return fft::rfftn(a); }, x));
  EXPECT_THAT(text, Not(HasSubstr("fft_on_host")));
  if (device_count() > 1) {
    EXPECT_THAT(text, HasSubstr("rfftn at explain_test.cpp:"));
  }
}
TEST(Explain, counts_the_collectives_that_share_a_row) {
  const auto f = [](const Array& x) {
    return fori_loop(
        0, 100, [](const Array&, const Array& value) { return value / sum(value); }, x);
  };
  const auto e = explain(f, rows(ones({4 * device_count()})));
  if (device_count() == 1) {
    EXPECT_EQ(e.calls(), 0);
    return;
  }
  EXPECT_EQ(e.calls("all-reduce"), 100);
  EXPECT_LT(e.collectives.size(), 5U);
  EXPECT_EQ(e.cost.communication_calls, 100);
  EXPECT_THAT(to_string(e), HasSubstr("all-reduce ×100"));
}

}  // namespace
}  // namespace tessera::test
