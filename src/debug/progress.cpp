// Progress of long work: a bar on a terminal, a line per minute in a log.
#include <tessera/error.hpp>
#include <tessera/progress.hpp>
#include <tessera/runtime.hpp>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "debug/progress_text.hpp"
#include "viz/terminal.hpp"

namespace tessera {
namespace {
double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int terminal_columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}
}  // namespace

struct Progress::Impl {
  ProgressState state;
  double start_s = now_s(), shown_s = 0;
  bool prints = is_main_process();
  bool on_terminal = viz::stdout_ends_at_terminal();  // mpirun gives ranks no terminal for stderr
  bool drawn = false;

  double period_s() const { return on_terminal ? 0.1 : 60; }
  void show() {
    const double now = now_s();
    state.seconds = now - start_s;
    shown_s = now;
    drawn = true;
    if (on_terminal)
      std::printf("\r%s\033[K", progress_bar(state, terminal_columns()).c_str());
    else
      std::fprintf(stderr, "%s\n", progress_line(state).c_str());
    std::fflush(on_terminal ? stdout : stderr);
  }
};

Progress::Progress(std::string what, std::int64_t total) : impl_(std::make_unique<Impl>()) {
  if (total < 0)
    throw ArgumentError("Progress: " + std::to_string(total) +
                        " steps in all; give 0 where their number is not known");
  impl_->state.what = std::move(what);
  impl_->state.total = total;
  impl_->shown_s = impl_->start_s;
}

Progress::~Progress() {
  if (!impl_->prints) return;
  const bool worth_a_line = impl_->drawn || now_s() - impl_->start_s >= 1;
  if (worth_a_line) impl_->show();
  if (worth_a_line && impl_->on_terminal) std::fputc('\n', stdout), std::fflush(stdout);
}

void Progress::advance(std::int64_t steps, const std::string& note) {
  impl_->state.done += steps;
  if (!impl_->prints) return;
  impl_->state.note = note;
  if (now_s() - impl_->shown_s >= impl_->period_s()) impl_->show();
}

std::int64_t Progress::done() const { return impl_->state.done; }

}  // namespace tessera
