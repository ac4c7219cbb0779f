#include "comm/watch/flight_record.hpp"

#include <gmock/gmock.h>
#include <tessera/error.hpp>

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "comm/collectives/collectives.hpp"
#include "comm/mpi/environment.hpp"
#include "comm/watch/waiting.hpp"

namespace tessera::comm {
namespace {

using testing::HasSubstr;
using testing::Not;

FlightRecord record(int rank, const std::string& host, bool waits, const std::string& what,
                    const std::string& purpose) {
  FlightRecord r;
  r.rank = rank, r.ranks = 4, r.process = 100 + rank, r.host = host, r.reason = "time-out", r.clock_s = 50;
  r.calls = {{7, 64, 40, waits ? 0.0 : 41.0, what, "devices 0-3", purpose}};
  return r;
}
FlightRecord waiting(int rank, const std::string& host, const std::string& what = "all-reduce") {
  return record(rank, host, true, what, "sum at main.cpp:9");
}

TEST(Diagnosis, names_the_rank_that_computes) {
  const auto text =
      diagnose({waiting(0, "h1"), waiting(1, "h1"),
                record(2, "h2", false, "all-gather", "matmul at main.cpp:7"), waiting(3, "h2")});
  EXPECT_THAT(text, HasSubstr("4 records of 4 ranks on 2 hosts, written on time-out"));
  EXPECT_THAT(text, HasSubstr("ranks 0, 1, 3 (h1, h2), for 10.0 s: waits in call #7: all-reduce on devices "
                              "0-3, 64 B, for sum at main.cpp:9"));
  EXPECT_THAT(text, HasSubstr("=> rank 2 computes (or works on files), and the others wait for it"));
  EXPECT_THAT(text, HasSubstr("gdb -p 102 on h2"));
}

TEST(Diagnosis, leaves_out_an_older_job_of_the_same_folder) {
  std::vector<FlightRecord> records = {waiting(0, "h1"), waiting(1, "h1"), waiting(3, "h1")};
  for (auto& r : records) r.job = r.rank == 3 ? "1" : "2", r.date_s = r.rank == 3 ? 1000 : 2000, r.ranks = 2;
  const auto text = diagnose(records);
  EXPECT_THAT(text, HasSubstr("left out: rank 3 of another job that wrote to this folder before"));
  EXPECT_THAT(text, HasSubstr("2 records of 2 ranks"));
  EXPECT_THAT(text, HasSubstr("=> all ranks are in the same call"));
}

TEST(Diagnosis, names_ranks_that_are_gone) {
  EXPECT_THAT(diagnose({waiting(0, "h1"), waiting(1, "h1")}), HasSubstr("=> ranks 2, 3 are gone"));
}

TEST(Diagnosis, names_the_rank_that_differs) {
  const auto text =
      diagnose({waiting(0, "h1"), waiting(1, "h1", "broadcast"), waiting(2, "h2"), waiting(3, "h2")});
  EXPECT_THAT(text,
              HasSubstr("=> rank 1 differs from the others on devices 0-3: in broadcast on devices 0-3"));
}

TEST(Diagnosis, names_the_rank_that_crashed) {
  auto crashed = record(1, "h1", false, "all-reduce", "sum at main.cpp:9");
  crashed.reason = "crash SIGSEGV";
  const auto text = diagnose({crashed});
  EXPECT_THAT(text, HasSubstr("=> rank 1 (h1, process 101) ended by a crash SIGSEGV: look there first"));
  EXPECT_THAT(text, HasSubstr("ranks 0, 2, 3 left no record: ended with the job"));
}

TEST(Diagnosis, of_a_job_that_goes_on_says_so) {
  std::vector<FlightRecord> records;
  for (int rank = 0; rank < 4; ++rank) {
    records.push_back(waiting(rank, "h1", rank == 2 ? "broadcast" : "all-reduce"));
    records.back().calls.back().start_s = 49.8;
  }
  EXPECT_THAT(diagnose(records),
              HasSubstr("=> every rank has begun or finished a call within the last second"));
}

TEST(Diagnosis, says_so_where_all_are_in_one_call) {
  EXPECT_THAT(diagnose({waiting(0, "h1"), waiting(1, "h1"), waiting(2, "h2"), waiting(3, "h2")}),
              HasSubstr("=> all ranks are in the same call"));
}

TEST(FlightRecord, refuses_what_is_none) {
  EXPECT_THROW(parse_flight_record(""), ArgumentError);
  EXPECT_THROW(parse_flight_record("tessera flight record 1\nrank x\n"), ArgumentError);
  EXPECT_THROW(parse_flight_record("tessera flight record 1\ncall\t1\t2\n"), ArgumentError);
}

TEST(FlightRecord, is_written_by_a_signal_and_read_again) {
  const auto& job = place_in_job();
  const auto folder =
      std::filesystem::temp_directory_path() / ("tessera-flight-test-" + std::to_string(getpid()));
  const RankContext place{job.rank, job.size, "h1"};
  disarm_flight_record();
  keep_flight_record(place, folder.string());
  {
    const Purpose purpose("x + y at main.cpp:9");
    barrier(world());
  }
  raise(SIGUSR2);
  char name[32];
  std::snprintf(name, sizeof name, "rank-%06d.txt", job.rank);
  std::ifstream file(folder / name);
  std::ostringstream text;
  text << file.rdbuf();
  const auto found = parse_flight_record(text.str());
  EXPECT_EQ(found.rank, job.rank);
  EXPECT_EQ(found.ranks, job.size);
  EXPECT_EQ(found.reason, "SIGUSR2");
  EXPECT_EQ(found.process, getpid());
  if (job.size > 1) {
    ASSERT_FALSE(found.calls.empty());
    EXPECT_EQ(found.calls.back().what, "barrier");
    EXPECT_EQ(found.calls.back().purpose, "x + y at main.cpp:9");
    EXPECT_FALSE(found.waits());
  }
  disarm_flight_record();
  keep_flight_record(place, "");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tessera::comm
