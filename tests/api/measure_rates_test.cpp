// Rates that are measured while other programs use the cores are recognised and not kept.
#include "api/measure_rates.hpp"

#include <gtest/gtest.h>

#include <tessera/tessera.hpp>

#include "comm/host/hosts.hpp"

namespace tessera::test {
namespace {

// A clock by which each measured step takes `wall` seconds, of them `cpu` on a core.
Clock steps_of(double wall, double cpu) {
  return [now = Clocked{0, 0}, wall, cpu]() mutable {
    now.wall_s += wall;
    now.cpu_s += cpu;
    return now;
  };
}

TEST(MeasuredRates, had_their_core_within_a_quarter_and_20_us) {
  EXPECT_TRUE(had_core({1e-3, 1e-3}));
  EXPECT_TRUE(had_core({1.24e-3, 1e-3}));
  EXPECT_FALSE(had_core({1.28e-3, 1e-3}));
  EXPECT_TRUE(had_core({19e-6, 0})) << "a clock with coarse steps";
  EXPECT_FALSE(had_core({4e-3, 10e-6})) << "descheduled during a ring of 50 messages";
}
TEST(MeasuredRates, clocks_count_work_and_not_sleep) {
  const auto before = read_clocks();
  timespec pause{0, 30'000'000};
  nanosleep(&pause, nullptr);
  const auto after = read_clocks();
  EXPECT_GE(after.wall_s - before.wall_s, 0.03);
  EXPECT_LT(after.cpu_s - before.cpu_s, 0.02);
}
TEST(MeasuredRates, of_a_quiet_machine_replace_those_known_before) {
  Rates before;
  before.between = {1e-3, 1e9};
  const auto measured = measure_rates(before, Effort::quick, steps_of(1e-4, 1e-4));
  EXPECT_FALSE(measured.is_disturbed);
  EXPECT_TRUE(measured.rates.has_compute);
  EXPECT_EQ(measured.rates.has_inside, device_count() > comm::host_count());
  EXPECT_NEAR(measured.rates.flops_per_s, 2.0 * 256 * 256 * 256 / 1e-4, 1e3);
  EXPECT_EQ(measured.rates.between == before.between, comm::host_count() == 1);
}
TEST(MeasuredRates, are_disturbed_on_every_rank_where_one_never_had_its_core) {
  const bool is_last = process_index() == device_count() - 1;
  EXPECT_TRUE(measure_rates({}, Effort::quick, steps_of(1e-4, is_last ? 1e-5 : 1e-4)).is_disturbed);
}
TEST(MeasuredRates, are_disturbed_where_no_machine_is_as_slow) {
  EXPECT_TRUE(measure_rates({}, Effort::quick, steps_of(2, 2)).is_disturbed);
}

}  // namespace
}  // namespace tessera::test
