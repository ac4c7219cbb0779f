// Predictions of a job whose ranks are on several hosts.
#include <bit>

#include <gtest/gtest.h>
#include <tessera/jit/simulate.hpp>
#include <tessera/tessera.hpp>

#include "base/rates.hpp"
#include "support/pretended_hosts.hpp"

namespace tessera {
namespace {

// Ranks treated as if each were on a host of its own, behind a slow link.
struct OnHosts {
  test::PretendedHosts apart{comm::world().device_ids()};
  Rates before = rates();
  OnHosts() {
    Rates slow;
    slow.between = {1e-4, 1e8};
    set_rates(slow);
  }
  ~OnHosts() { set_rates(before); }
};

Mesh row_mesh() { return make_mesh({device_count()}, {"x"}); }
Array by_rows(std::int64_t n) { return device_put(ones({n, n}, float64), row_mesh(), P("x")); }

TEST(JobHosts, simulate_counts_them) {
  const OnHosts hosts;
  const int ranks = device_count();
  const std::int64_t n = 40 * ranks + 3;
  const Array x = by_rows(n);
  const auto run = simulate(
      [](const Array& a) { return with_sharding_constraint(a, NamedSharding(row_mesh(), P())); }, {}, x);
  EXPECT_EQ(run.hosts, ranks);
  const double received = 8.0 * static_cast<double>(n * n - (n + ranks - 1) / ranks * n);
  EXPECT_GE(run.seconds, received / 1e8);
}

TEST(JobHosts, explain_and_simulate_count_the_agreement_of_a_call_that_communicates) {
  const OnHosts hosts;
  const Array x = by_rows(8);
  const double agreed_s = 1e-4 * std::bit_width(static_cast<unsigned>(device_count() - 1));
  const auto local = [](const Array& a) { return a + 1; };
  const auto total = [](const Array& a) { return sum(a); };
  EXPECT_LT(explain(local, x).predicted_seconds, 1e-6);
  const auto e = explain(total, x);
  if (device_count() == 1) {
    EXPECT_TRUE(e.collectives.empty());
    return;
  }
  ASSERT_EQ(e.collectives.size(), 1u);
  EXPECT_NEAR(e.agreement_seconds, agreed_s, 1e-9);
  EXPECT_NE(to_string(e).find("before it all ranks compare the call: " +
                              std::to_string(agreed_s * 1e6).substr(0, 5)),
            std::string::npos)
      << to_string(e);
  EXPECT_NEAR(e.predicted_seconds, agreed_s + e.collectives[0].seconds, 1e-6);
  EXPECT_LT(simulate(local, {}, x).seconds, 1e-6);
  // Seven ranks fold before their first round and are told after the last.
  EXPECT_NEAR(simulate(total, {}, x).seconds, e.predicted_seconds, 0.3 * e.predicted_seconds);
}

// A sum of 4 MiB goes through all hosts twice: each adds a block, then receives those of the others.
TEST(JobHosts, explain_counts_both_ways_of_a_large_all_reduce) {
  const OnHosts hosts;
  const int ranks = device_count();
  const Array x = device_put(ones({ranks, 1024, 512}, float64), row_mesh(), P("x"));
  const auto e = explain([](const Array& a) { return sum(a, 0); }, x);
  const double bytes = 2.0 * (ranks - 1) / ranks * (4 << 20);
  if (ranks < 3) return;  // two hosts add the whole value at once
  EXPECT_GE(e.collectives.at(0).seconds, bytes / 1e8 + 2e-4);
}

TEST(JobHosts, panels_arrive_while_a_product_computes) {
  const OnHosts hosts;
  const std::int64_t n = 2048;
  const Array x = by_rows(n);
  const auto e = explain([](const Array& a) { return matmul(a, a); }, x);
  double moving = 0;
  for (const auto& row : e.collectives) moving += row.seconds;
  const double rows = static_cast<double>((n + device_count() - 1) / device_count());
  const double computing = 2 * rows * n * n / rates().flops_per_s;
  EXPECT_GE(e.predicted_seconds, std::max(moving, computing));
  if (device_count() > 1) {
    EXPECT_GT(moving, 0);
    EXPECT_LT(e.predicted_seconds, moving + computing);
  }
}

}  // namespace
}  // namespace tessera
