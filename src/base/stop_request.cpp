#include "base/stop_request.hpp"

#include <array>
#include <atomic>
#include <csignal>

#include "base/session.hpp"

namespace tessera {
namespace {

std::atomic<int> noted_signal{0};  // written in a signal handler
std::atomic<bool> all_know = false;
static_assert(std::atomic<int>::is_always_lock_free);

void note(int signal) { noted_signal.store(signal, std::memory_order_relaxed); }

class Listener {
 public:
  Listener() {
    for (auto& [signal, before] : kept_)
      if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL) listen(signal);
  }
  ~Listener() {
    for (const auto& [signal, before] : kept_)
      if (before.sa_handler == SIG_DFL) std::signal(signal, SIG_DFL);
    noted_signal = 0;
    all_know = false;
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  static void listen(int signal) {
    struct sigaction action {};
    action.sa_handler = note;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    if (signal == SIGINT) action.sa_flags |= static_cast<int>(SA_RESETHAND);  // the second one kills
    sigaction(signal, &action, nullptr);
  }
  struct Kept {
    int signal;
    struct sigaction before;
  };
  std::array<Kept, 3> kept_{{{SIGTERM, {}}, {SIGUSR1, {}}, {SIGINT, {}}}};
};

struct Stop {
  int agreed = 0, undisturbed = 0;
};

}  // namespace

void listen_for_stop() { state<Listener>(); }
int stop_signal_here() { return noted_signal.load(std::memory_order_relaxed); }
bool stop_is_not_agreed() { return stop_signal_here() != 0 && !all_know.load(std::memory_order_relaxed); }
int agreed_stop_signal() { return state<Stop>().agreed; }
void note_agreed_stop(int signal) {
  if (signal != 0 && state<Stop>().agreed == 0) state<Stop>().agreed = signal;
  if (signal != 0) all_know = true;
}
void forget_stop() {
  noted_signal = 0;
  all_know = false;
  state<Stop>().agreed = 0;
}

UndisturbedByStop::UndisturbedByStop() { ++state<Stop>().undisturbed; }
UndisturbedByStop::~UndisturbedByStop() { --state<Stop>().undisturbed; }
bool may_be_disturbed() { return state<Stop>().undisturbed == 0; }

}  // namespace tessera
