#include "launcher.hpp"

#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace cli {
namespace {

using testing::ElementsAre;

constexpr auto srun_2205 =
    "srun: MPI types are...\nsrun: pmix\nsrun: pmix_v4\nsrun: pmi2\nsrun: none\n"
    "specific pmix plugin versions available: pmix_v4\n";

TEST(mpi_type, is_pmix_for_open_mpi_and_pmi2_for_others) {
  EXPECT_EQ(mpi_type(srun_2205, "Open MPI v4.1.4"), "pmix");
  EXPECT_EQ(mpi_type(srun_2205, "MPICH Version: 4.0.2"), "pmi2");
}

TEST(mpi_type, takes_a_plugin_of_one_version_where_there_is_no_other) {
  EXPECT_EQ(mpi_type("MPI plugin types are...\n\tpmi2\n\tpmix_v3\n", "Open MPI v4.1.4"), "pmix_v3");
}

TEST(mpi_type, is_none_where_nothing_suits) {
  EXPECT_EQ(mpi_type("srun: pmi2\nsrun: none\n", "Open MPI v4.1.4"), "");
  EXPECT_EQ(mpi_type("", "MPICH Version: 4.0.2"), "");
}

TEST(most_tasks_per_node, reads_what_slurm_says) {
  EXPECT_EQ(most_tasks_per_node("32(x3),16"), 32);
  EXPECT_EQ(most_tasks_per_node("1,4(x2)"), 4);
  EXPECT_EQ(most_tasks_per_node(""), 0);
}

TEST(mapping, gives_each_rank_its_cores) {
  EXPECT_THAT(mapping(16, 1, {32, 64}), ElementsAre("--map-by", "slot:PE=1", "--bind-to", "core"));
  EXPECT_THAT(mapping(4, 8, {32, 64}), ElementsAre("--map-by", "slot:PE=8", "--bind-to", "core"));
}

TEST(mapping, counts_hardware_threads_where_the_job_needs_them) {
  EXPECT_THAT(mapping(64, 1, {32, 64}),
              ElementsAre("--use-hwthread-cpus", "--map-by", "slot:PE=1", "--bind-to", "hwthread"));
}

TEST(mapping, binds_nothing_where_ranks_share_cores) {
  EXPECT_THAT(mapping(8, 1, {2, 2}), ElementsAre("--bind-to", "none"));
}

// An mpirun that only says its version.
std::string mpirun_of(const std::string& version) {
  const auto path = std::filesystem::temp_directory_path() / ("mpirun-" + std::to_string(version.size()));
  std::ofstream(path) << "#!/bin/sh\necho '" << version << "'\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

TEST(quiet_words, are_for_the_launchers_that_have_the_option) {
  EXPECT_THAT(quiet_words(mpirun_of("mpirun (Open MPI) 4.1.4")), ElementsAre("--quiet"));
  EXPECT_THAT(quiet_words(mpirun_of("mpirun (Open MPI) 5.0.11")), ElementsAre());  // an error there
  EXPECT_THAT(quiet_words(mpirun_of("HYDRA build details:")), ElementsAre());
  EXPECT_THAT(quiet_words("/no/such/mpirun"), ElementsAre());
}

TEST(shell_word, is_what_the_shell_gives_back) {
  EXPECT_EQ(shell_word("--steps=10"), "--steps=10");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b$c"), "'a b$c'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
}

}  // namespace
}  // namespace cli
