#include <nlohmann/json.hpp>

#include "io/folder.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;

class Debug : public InFolder {};

TEST_F(Debug, comm_stats_count_nothing_on_ranks_outside_of_the_mesh) {
  const int p = device_count();
  if (p < 3) return;
  std::vector<Device> first = devices();
  first.pop_back();
  const Mesh mesh = make_mesh({p - 1}, {"x"}, first);
  const Array x = block_until_ready(device_put(arange(7 * p), mesh, P("x")));
  const debug::CommStats stats;
  eval(device_put(x, mesh, P()), sum(x), roll(x, 1, 0), sort(-x));
  const bool is_outside = process_index() == p - 1;
  EXPECT_EQ(stats.calls() == 0, is_outside);
}

TEST_F(Debug, comm_stats_count_what_this_rank_received_since_they_began) {
  const int n = device_count();
  const Array x = device_put(ones({4 * n}), all_rows());
  eval(x);
  debug::CommStats stats;
  EXPECT_EQ(stats.calls(), 0);
  eval(device_put(x, NamedSharding(make_mesh({n}, {"x"}), P())));
  EXPECT_EQ(stats.calls("all-gather"), n > 1 ? 1 : 0);
  EXPECT_EQ(stats.bytes("all-gather"), 4 * 4 * (n - 1));
  EXPECT_EQ(stats.bytes(), stats.bytes("all-gather"));
  const debug::CommStats later;
  EXPECT_EQ(later.bytes(), 0);
}

TEST_F(Debug, the_picture_of_an_array_is_that_of_its_sharding) {
  const Array x = device_put(ones({8, 2}), all_rows());
  EXPECT_EQ(debug::visualize_array_sharding(x), debug::visualize_sharding({8, 2}, x.sharding()));
  std::optional<Sharding> seen;
  debug::inspect_array_sharding(x, [&](const Sharding& s) { seen = s; });
  EXPECT_EQ(seen, x.sharding());
}

TEST_F(Debug, print_writes_once_and_refuses_a_wrong_number_of_arguments) {
  testing::internal::CaptureStdout();
  debug::print("{{}} {} is {}, {}", "x", device_put(arange(3), all_rows()), 0.5);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), is_main_process() ? "{} x is [0 1 2], 0.5\n" : "");
  EXPECT_THAT(text_of_error<ArgumentError>([] { debug::print("{} {}", 1); }),
              HasSubstr("has 2 placeholders, but 1 argument follows"));
  EXPECT_THAT(text_of_error<ArgumentError>([] { debug::print("{", 1); }), HasSubstr("a single '{'"));
}

// The number of a rank's steps in a Chrome trace, without the end events of overlapped collectives.
std::int64_t events_of(const nlohmann::json& trace, int rank) {
  std::int64_t events = 0;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["pid"] == rank &&
        !event["name"].get<std::string>().starts_with("end of "))
      ++events;
  return events;
}

TEST_F(Debug, a_profile_counts_steps_and_writes_a_chrome_trace) {
  const Array x = device_put(ones({64, 64}), all_rows());
  eval(x);
  debug::profile profile;
  for (int n = 0; n < 3; ++n) eval(sum(exp(x)));
  EXPECT_GT(profile.steps(), 0);
  EXPECT_EQ(profile.steps() % 3, 0);
  EXPECT_GT(profile.seconds(), 0);
  EXPECT_THAT(profile.table(), HasSubstr("sum"));
  profile.write(path("trace.json"));
  const auto own =
      process_count() == 1 ? path("trace.json") : path("trace." + std::to_string(process_index()) + ".json");
  std::ifstream file(own);
  const auto trace = nlohmann::json::parse(file);
  EXPECT_EQ(events_of(trace, process_index()), profile.steps());
}

TEST_F(Debug, one_trace_has_a_track_for_every_rank) {
  const Array x = device_put(ones({64, 64}), all_rows());
  eval(x);
  std::int64_t steps = 0;
  {
    debug::profile profile(path("all.json"));
    eval(sum(exp(x)));
    steps = profile.steps();
  }
  std::ifstream file(path("all.json"));
  const auto trace = nlohmann::json::parse(file);
  for (int rank = 0; rank < process_count(); ++rank) EXPECT_EQ(events_of(trace, rank), steps) << rank;
  EXPECT_THAT(trace.dump(), HasSubstr("rank " + std::to_string(process_count() - 1)));
}

TEST_F(Debug, a_report_merges_the_ranks) {
  const Array x = device_put(ones({64, 64}), all_rows());
  eval(x);
  debug::profile profile;
  for (int n = 0; n < 3; ++n) eval(sum(exp(x)));
  const auto report = profile.report();
  EXPECT_THAT(report, HasSubstr(process_count() == 1 ? "1 rank on 1 host"
                                                     : std::to_string(process_count()) + " ranks on"));
  EXPECT_THAT(report, HasSubstr("compute "));
  EXPECT_THAT(report, HasSubstr("memory         peak "));
  EXPECT_THAT(report, HasSubstr("exp"));
  EXPECT_THAT(report, HasSubstr(process_count() > 1 ? "all-reduce for sum" : "sum at"));
}

TEST_F(Debug, nan_check_names_the_op_on_every_rank) {
  const Array x = device_put(astype(arange(4), float32) - 1, all_rows());
  eval(log(x));  // unwatched
  debug::set_nan_check(true);
  const auto text = text_of_error<NanError>([&] { eval(log(x)); });
  EXPECT_NO_THROW(eval(exp(x)));
  debug::set_nan_check(false);
  EXPECT_THAT(text, testing::AllOf(HasSubstr("log at debug_test.cpp:"), HasSubstr("made 1 NaN")));
}

}  // namespace
}  // namespace tessera::test
