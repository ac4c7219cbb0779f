// program HOW FOLDER STEPS [SIGNAL RANK AFTER_MS]: counts to STEPS, continuing its previous run, and is asked
// to stop by a signal that one rank receives this long after its first step. check.py starts it and checks
// the result.
//
//   asks       checks preempted() after each step
//   callback   registers on_preemption; saves nothing else
//   saving     saves each step, and registers on_preemption
//   fails      registers a function that throws an IoError on one rank
//   killed     saves each step; one rank is killed in the middle of the save of step 6
//   own        has its own handler for the signal
//   part       STEPS seconds of steps on the first two ranks alone; then all ranks evaluate
//   catches    catches Preempted and continues, to STEPS at least
#include <tessera/tessera.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

using namespace tessera;

namespace {

struct State {
  int step = 0;
  Array sum;
};

volatile std::sig_atomic_t own_calls = 0;
void own_handler(int) { own_calls = own_calls + 1; }

void say(const std::string& line) {
  if (is_main_process()) std::printf("%s\n", line.c_str()), std::fflush(stdout);
}

// Two evaluations over all ranks per step; the first one does not end the step.
State next(const State& now) {
  const Array more = now.sum + 1;
  eval(sum(more));
  return {now.step + 1, more};
}

void count_on_a_part(const std::string& folder, int seconds, const std::function<void()>& after_first) {
  const Mesh two = make_mesh({2}, {"x"}, {devices()[0], devices()[1]});
  Array sum = device_put(zeros({8}), two, P("x"));
  io::checkpoint::Manager saves(folder, {.keep = 2});
  const auto guard = on_preemption([&] {
    saves.save_now(seconds, sum);
    say("saved " + std::to_string(seconds));
  });
  for (int step = 0; step < 20 * seconds; ++step) {
    sum = sum + 1;
    eval(sum);
    if (step == 0) after_first();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  eval(device_put(ones({4}), make_mesh({device_count()}, {"x"}), P("x")));
}

void count(const std::string& how, const std::string& folder, int steps, std::function<void()> after_first) {
  const Sharding rows = NamedSharding(make_mesh({device_count()}, {"x"}), P("x"));
  State state{0, device_put(zeros({1009}, int32), rows)};
  io::checkpoint::Manager saves(folder, {.keep = 2});
  state.step = saves.restore(state.sum).value_or(0);
  if (state.step > 0) say("goes on at " + std::to_string(state.step));

  int calls = 0;
  const auto save = [&] {
    ++calls;
    if (how == "fails" && process_index() == device_count() - 1)
      throw IoError("the disk of this rank is full");
    saves.save_now(state.step, state.sum);
    say("saved " + std::to_string(state.step));
  };
  std::optional<OnPreemption> guard;
  if (how != "asks") guard.emplace(on_preemption(save));
  say("counts");
  while (state.step < steps || (how == "catches" && calls == 0)) {
    try {
      state = next(state);
    } catch (const Preempted&) {
      if (how != "catches") throw;
      say("caught");
    }
    if (how == "killed" && state.step == 6) saves.wait(), setenv("TESSERA_TEST_FAULT", "half_written@1", 1);
    if (how == "saving" || how == "killed") saves.save(state.step, state.sum);
    if (how == "own" && own_calls > 0) break;
    if (how == "asks" && preempted()) {
      save();
      throw Preempted("stopped at its own wish");
    }
    if (after_first) std::exchange(after_first, nullptr)();
  }
  say("reached " + std::to_string(item<int>(max(state.sum))) + " after " + std::to_string(calls) + " calls" +
      (own_calls > 0 ? ", heard it itself" : ""));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 98;
  const std::string how = argv[1], folder = argv[2];
  const int steps = std::atoi(argv[3]);
  if (how == "own") std::signal(SIGUSR1, own_handler);
  std::thread sender;
  const int status = run(argc, argv, [&] {
    const auto send = [&] {
      sender = std::thread([signal = std::atoi(argv[4]), ms = std::atoi(argv[6])] {
        std::this_thread::sleep_for(std::chrono::milliseconds(ms));
        kill(getpid(), signal);
      });
    };
    const bool is_asked = argc > 6 && std::atoi(argv[5]) == process_index();
    if (how == "part")
      return count_on_a_part(
          folder, steps, is_asked ? std::function<void()>(send) : [] {});
    count(how, folder, steps, is_asked ? std::function<void()>(send) : nullptr);
  });
  if (sender.joinable()) sender.join();
  return status;
}
