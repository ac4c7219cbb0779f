// Predictions of a job whose ranks are on several hosts.
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
