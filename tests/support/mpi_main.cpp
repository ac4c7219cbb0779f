// main() of the test programs that run under mpirun. Every rank runs every test; a test that fails on one
// rank fails on all.
//
// After each test the ranks agree on the outcome, which also keeps them in step: a rank that left a test
// early by a failed ASSERT waits there; the others either arrive or are stopped by the watchdog, which prints
// each rank's stack.
#include <gtest/gtest.h>

#include <tessera/runtime.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "comm/mpi/mpi_api.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace tessera::comm;

struct Job {
  MPI_Comm comm = MPI_COMM_NULL;  // the tests' own: never mixed with the library's messages
  int rank = 0, size = 1;
};
Job job;

// Each rank's text, in rank order.
std::vector<std::string> gather_texts(const std::string& mine) {
  const int bytes = static_cast<int>(mine.size());
  std::vector<int> bytes_of(job.size), offset_of(bytes_of.size());
  MPI_Allgather(&bytes, 1, MPI_INT, bytes_of.data(), 1, MPI_INT, job.comm);
  int total = 0;
  for (std::size_t r = 0; r < bytes_of.size(); ++r) offset_of[r] = total, total += bytes_of[r];
  std::string all(total, '\0');
  MPI_Allgatherv(mine.data(), bytes, MPI_CHAR, all.data(), bytes_of.data(), offset_of.data(), MPI_CHAR,
                 job.comm);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < bytes_of.size(); ++r) texts.push_back(all.substr(offset_of[r], bytes_of[r]));
  return texts;
}

std::string failures_of(const testing::TestInfo& test) {
  std::string text;
  const auto& result = *test.result();
  for (int i = 0; i < result.total_part_count(); ++i) {
    const auto& part = result.GetTestPartResult(i);
    if (!part.failed()) continue;
    text += std::string(part.file_name() ? part.file_name() : "?") + ":" +
            std::to_string(part.line_number()) + ": " + part.message() + "\n";
  }
  return text;
}

class Agreement : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    tessera::test::test_started(test.test_suite_name(), test.name());
  }

  // Runs before the printer's OnTestEnd (listeners end in reverse order), so that failures added here are
  // counted and shown.
  void OnTestEnd(const testing::TestInfo& test) override {
    int failed = test.result()->Failed(), ranks_failed = 0;
    MPI_Allreduce(&failed, &ranks_failed, 1, MPI_INT, MPI_SUM, job.comm);
    if (ranks_failed == 0) return;
    const auto texts = gather_texts(failures_of(test));
    std::string elsewhere;
    for (std::size_t r = 1; r < texts.size() && job.rank == 0; ++r)
      if (!texts[r].empty()) elsewhere += "[rank " + std::to_string(r) + "] " + texts[r];
    if (!failed || !elsewhere.empty())
      ADD_FAILURE() << "failed on " << ranks_failed << " of " << job.size << " ranks\n" << elsewhere;
  }
};

// A rank with another list of tests would wait for a test that the others never start.
void require_same_tests() {
  std::size_t hash = 1469598103934665603u;
  const auto& unit = *testing::UnitTest::GetInstance();
  for (int s = 0; s < unit.total_test_suite_count(); ++s)
    for (int t = 0; t < unit.GetTestSuite(s)->total_test_count(); ++t) {
      const auto& test = *unit.GetTestSuite(s)->GetTestInfo(t);
      for (const char c : std::string(test.test_suite_name()) + "." + test.name())
        hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    }
  std::uint64_t mine[2] = {hash, ~hash}, all[2];
  MPI_Allreduce(mine, all, 2, MPI_UINT64_T, MPI_MAX, job.comm);
  if (all[0] != ~all[1]) {
    if (job.rank == 0) std::fprintf(stderr, "the ranks have different lists of tests\n");
    MPI_Abort(job.comm, 2);
  }
}

double time_limit_s() {
  const char* text = std::getenv("TESSERA_TEST_TIMEOUT");
  return text ? std::atof(text) : 90.0;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  tessera::Runtime runtime(argc, argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &job.comm);
  MPI_Comm_rank(job.comm, &job.rank);
  MPI_Comm_size(job.comm, &job.size);
  tessera::test::start_watchdog(job.rank, time_limit_s());
  require_same_tests();

  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (job.rank != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new Agreement);

  const int status = RUN_ALL_TESTS();
  MPI_Comm_free(&job.comm);
  return status;
}
