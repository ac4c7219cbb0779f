#include "viz/terminal.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <initializer_list>

namespace tessera::viz {
namespace {

using enum ColourDepth;

struct World {
  const char* term = "xterm-256color";
  const char* colour_term = "truecolor";
  const char* no_color = nullptr;
  const char* rank = nullptr;  // set by mpirun
};

void set_or_clear(const char* name, const char* value) {
  if (value)
    setenv(name, value, 1);
  else
    unsetenv(name);
}

int open_terminal() {
  int outer = -1, inner = -1;
  EXPECT_EQ(openpty(&outer, &inner, nullptr, nullptr, nullptr), 0);
  return inner;  // `outer` stays open until the process ends, or the terminal would hang up
}

// Runs work in a child process with this standard output; returns its exit status.
int in_child(int output, const std::function<int()>& work) {
  pid_t child = fork();
  if (child == 0) {
    dup2(output, STDOUT_FILENO);
    _exit(work());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int ask(const World& world) {
  set_or_clear("TERM", world.term);
  set_or_clear("COLORTERM", world.colour_term);
  set_or_clear("NO_COLOR", world.no_color);
  for (const char* name : {"PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) unsetenv(name);
  set_or_clear("OMPI_COMM_WORLD_RANK", world.rank);
  return static_cast<int>(stdout_colour_depth());
}

ColourDepth depth_on(int output, const World& world) {
  return static_cast<ColourDepth>(in_child(output, [&] { return ask(world); }));
}

// Simulates mpirun (with its own standard output) starting a rank on a pseudo-terminal.
ColourDepth depth_under_launcher(int launcher_output) {
  World world;
  world.rank = "0";
  return static_cast<ColourDepth>(
      in_child(launcher_output, [&] { return in_child(open_terminal(), [&] { return ask(world); }); }));
}

TEST(TerminalTest, colour_needs_a_terminal) {
  EXPECT_EQ(depth_on(open_terminal(), {}), truecolour);
  EXPECT_EQ(depth_on(open("/dev/null", O_WRONLY), {}), none);
}

TEST(TerminalTest, the_environment_limits_the_colours) {
  EXPECT_EQ(depth_on(open_terminal(), {.colour_term = nullptr}), indexed256);
  EXPECT_EQ(depth_on(open_terminal(), {.term = "dumb"}), none);
  EXPECT_EQ(depth_on(open_terminal(), {.term = nullptr}), none);
  EXPECT_EQ(depth_on(open_terminal(), {.no_color = "1"}), none);
  EXPECT_EQ(depth_on(open_terminal(), {.no_color = ""}), truecolour);
}

TEST(TerminalTest, a_rank_asks_where_its_launcher_writes) {
  EXPECT_EQ(depth_under_launcher(open_terminal()), truecolour);
  EXPECT_EQ(depth_under_launcher(open("/dev/null", O_WRONLY)), none);
}

}  // namespace
}  // namespace tessera::viz
