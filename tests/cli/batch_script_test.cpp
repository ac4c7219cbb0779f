#include "batch_script.hpp"

#include <gmock/gmock.h>

namespace cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string refusal(const std::string& limit) {
  try {
    seconds_of_limit(limit);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

BatchOrder heat() {
  BatchOrder order;
  order.nodes = 4, order.ranks = 128, order.time = "1:00:00", order.warn_s = 120;
  order.words = {"./heat", "--title", "two words"};
  return order;
}
const JobEnvironment here{
    "/home/ada/run", {"srun", "--mpi=pmix"}, {{"TESSERA_LOG", "info"}, {"TESSERA_DUMP", "a b"}}};

TEST(seconds_of_limit, reads_the_six_forms_of_slurm) {
  EXPECT_EQ(seconds_of_limit("90"), 90 * 60);
  EXPECT_EQ(seconds_of_limit("1:00"), 60);
  EXPECT_EQ(seconds_of_limit("1:00:00"), 3600);
  EXPECT_EQ(seconds_of_limit("1-12"), 36 * 3600);
  EXPECT_EQ(seconds_of_limit("1-12:30"), 36 * 3600 + 1800);
  EXPECT_EQ(seconds_of_limit("1-12:30:05"), 36 * 3600 + 1805);
}

TEST(seconds_of_limit, refuses_what_slurm_would_refuse) {
  for (const char* text : {"", "x", "1h", "1:", ":1", "1:2:3:4", "1-", "-1", "1-2-3", "99999999", "1.5"})
    EXPECT_THAT(refusal(text), HasSubstr("is no time limit")) << text;
  EXPECT_THAT(refusal("0"), HasSubstr("leaves no time"));
}

TEST(limit, is_written_in_one_form) {
  EXPECT_EQ(limit_text(90 * 60), "01:30:00");
  EXPECT_EQ(limit_text(36 * 3600 + 1805), "1-12:30:05");
  EXPECT_EQ(limit_words(36 * 3600 + 61), "1 day 12 hours 1 minute 1 second");
}

TEST(warning, leaves_a_short_job_most_of_its_time) {
  EXPECT_EQ(warning_of(3600), 120);
  EXPECT_EQ(warning_of(60), 15);
}

TEST(batch_script, quotes_what_has_blanks_and_comment_signs) {
  auto order = heat();
  order.name = "two words # one", order.partition = "gpu long";
  EXPECT_THAT(batch_script(order, {"/home/ada/my runs", {"srun"}, {}}),
              AllOf(HasSubstr("#SBATCH --job-name=\"two words # one\"\n"),
                    HasSubstr("#SBATCH --partition=\"gpu long\"\n"),
                    HasSubstr("#SBATCH --chdir=\"/home/ada/my runs\"\n")));
}

TEST(batch_script, refuses_what_would_write_lines_of_its_own) {
  const std::string evil = "x\ntouch pwned #";
  const auto refused = [](const BatchOrder& order, const JobEnvironment& place) {
    try {
      return batch_script(order, place);
    } catch (const UsageError& error) {
      return std::string("refused: ") + error.what();
    }
  };
  for (auto member : {&BatchOrder::name, &BatchOrder::partition, &BatchOrder::account, &BatchOrder::memory,
                      &BatchOrder::array}) {
    auto order = heat();
    order.*member = evil;
    EXPECT_THAT(refused(order, here), HasSubstr("cannot stand in a batch script"));
    order.*member = "a\" --wrap=\"touch pwned";
    EXPECT_THAT(refused(order, here), HasSubstr("cannot stand in a batch script"));
  }
  auto order = heat();
  order.words = {"./" + evil};
  EXPECT_THAT(refused(order, here), HasSubstr("--job-name"));
  order.name = "heat";  // the program itself is a quoted word of the shell
  EXPECT_THAT(refused(order, here), HasSubstr("'./x\ntouch pwned #' &"));
  EXPECT_THAT(refused(heat(), {evil, {"srun"}, {}}), HasSubstr("--chdir"));
}

TEST(name_of_program, is_the_programs_or_that_of_what_python_runs) {
  EXPECT_EQ(name_of_program({"bin/heat", "--steps", "10"}), "heat");
  EXPECT_EQ(name_of_program({"python3.11", "-u", "run/heat.py", "10"}), "heat");
  EXPECT_EQ(name_of_program({"python3", "-m", "tessera.jax", "heat.py"}), "heat");
  EXPECT_EQ(name_of_program({"python3", "-m", "heat"}), "heat");
  EXPECT_EQ(name_of_program({"python3"}), "python3");
}

TEST(batch_script, asks_for_what_was_ordered) {
  EXPECT_THAT(batch_script(heat(), here),
              AllOf(HasSubstr("#SBATCH --job-name=heat\n#SBATCH --nodes=4\n#SBATCH --ntasks=128\n#SBATCH "
                              "--ntasks-per-node=32\n"),
                    HasSubstr("#SBATCH --time=01:00:00"), HasSubstr("#SBATCH --chdir=/home/ada/run\n"),
                    HasSubstr("#SBATCH --signal=B:USR1@120 "), HasSubstr("#SBATCH --requeue ")));
}

TEST(batch_script, leaves_uneven_nodes_to_slurm) {
  auto order = heat();
  order.ranks = 130;
  EXPECT_THAT(batch_script(order, here), Not(HasSubstr("ntasks-per-node")));
}

TEST(batch_script, quotes_words_and_settings_for_the_shell) {
  EXPECT_THAT(batch_script(heat(), here), AllOf(HasSubstr("export TESSERA_DUMP='a b'\n"),
                                                HasSubstr("srun --mpi=pmix ./heat --title 'two words' &\n")));
}

TEST(batch_script, starts_a_job_again_that_saved) {
  EXPECT_THAT(batch_script(heat(), here), HasSubstr("case $status in 85|143)"));
  auto once = heat();
  once.no_requeue = true;
  EXPECT_THAT(batch_script(once, here), AllOf(Not(HasSubstr("scontrol")), HasSubstr("--no-requeue\n")));
}

TEST(batch_script, gives_each_job_of_an_array_a_log_of_its_own) {
  auto order = heat();
  order.array = "0-9";
  EXPECT_THAT(batch_script(order, here),
              AllOf(HasSubstr("--array=0-9\n"), HasSubstr("--output=%x.%A_%a.log\n")));
}

}  // namespace
}  // namespace cli
