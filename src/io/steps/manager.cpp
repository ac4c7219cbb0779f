#include "io/steps/manager.hpp"

#include <tessera/checkpoint.hpp>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/call.hpp"
#include "base/log.hpp"
#include "base/session.hpp"
#include "base/text.hpp"
#include "comm/mpi/environment.hpp"
#include "comm/watch/agreement.hpp"
#include "comm/watch/failure.hpp"
#include "graph/op.hpp"
#include "io/file_lock.hpp"
#include "io/steps/step_save.hpp"

namespace tessera::io::checkpoint {

// A StepSave and the thread that writes it.
class UnderWay {
 public:
  UnderWay(std::unique_ptr<StepSave> save, bool on_a_thread) : save_(std::move(save)) {
    if (on_a_thread && start_thread()) return;
    save_->write();
    is_written_ = has_ended_ = true;
  }
  ~UnderWay() { stop_and_join(); }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

  bool is_written() const {
    const std::lock_guard lock(mutex_);
    return is_written_;
  }
  void finish(const Team& team) {
    stop_and_join();
    save_->finish(team);
  }
  // For ranks that cannot communicate: the first rank's thread gets some time to find that all have written.
  void finish_alone() {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_written_; });
      changed_.wait_for(lock, longest_wait(), [&] { return has_ended_; });
    }
    stop_and_join();
    save_->finish_alone();
  }

 private:
  void note(bool& fact) {
    const std::lock_guard lock(mutex_);
    fact = true;
    changed_.notify_all();
  }
  void stop_and_join() {
    save_->stop_looking();
    if (thread_.joinable()) thread_.join();
  }
  // The new thread blocks all signals, which stay with the program's thread. Without a thread the step is
  // written at once.
  bool start_thread() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this] {
        save_->write();
        note(is_written_);
        save_->commit_alone();
        note(has_ended_);
      });
    } catch (const std::system_error&) {}
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread_.joinable();
  }
  std::unique_ptr<StepSave> save_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_written_ = false, has_ended_ = false;
  std::thread thread_;
};

struct Manager::Impl {
  std::string dir;
  ManagerOptions options;
  int exceptions_before = std::uncaught_exceptions();
  int session = session_number();
  bool warned_of_later_steps = false;
  std::unique_ptr<UnderWay> under_way = {};

  // Collective.
  void finish(const Team& team) {
    if (under_way == nullptr) return;
    const auto ended = std::move(under_way);
    ended->finish(team);
  }
  void finish_alone() {
    if (under_way == nullptr) return;
    const auto ended = std::move(under_way);
    ended->finish_alone();
  }
  void finish_if_written(const Team& team) {
    if (under_way != nullptr && comm::all_ok(comm::world(), under_way->is_written())) finish(team);
  }
};

namespace {

namespace fs = std::filesystem;

struct Managers {
  struct One {
    std::string dir;
    std::function<void(const Team&)> finish;
    std::function<void()> finish_alone;
    const void* owner;
  };
  std::vector<One> all;
  bool is_ended_with_the_program = false;
};

// Ends the saves of managers that outlive the runtime, when the ranks can no longer communicate.
void end_with_the_program() {
  if (std::exchange(state<Managers>().is_ended_with_the_program, true)) return;
  comm::before_leaving([] {
    for (const auto& one : state<Managers>().all) try {
        one.finish_alone();
      } catch (const std::exception& error) {
        log(LogLevel::error, error.what());
        comm::owe_failure_by_exception();
      }
  });
}

bool is_same_folder(const std::string& a, const std::string& b) {
  std::error_code none;
  return a == b || fs::weakly_canonical(a, none) == fs::weakly_canonical(b, none);
}

// Whether an intact step of this number exists; a damaged one is set aside for the step saved now.
bool is_there(const Team& team, const std::string& dir, int step) {
  const auto folder = dir + "/" + step_name(step);
  std::error_code none;
  if (team.from_first(fs::exists(folder, none) || none ? 1 : 0) == 0) return false;
  if (is_step_whole(team, folder)) return true;
  set_aside_what_is_damaged(team, {step, {}, {folder}});
  return false;
}

// The warning about later steps: of another run, or from before the program resumed from an older one.
std::string words_on_later_steps(const std::string& dir, int later, int step) {
  return call_text() + ": " + in_quotes(dir) + " holds step " + std::to_string(later) +
         ", which is later than step " + std::to_string(step) +
         ". restore takes the highest number, and no later step is removed: save to another folder, or "
         "remove the steps that this run replaces";
}

}  // namespace

bool is_managed(const std::string& dir) {
  const auto& all = state<Managers>().all;
  return std::any_of(all.begin(), all.end(), [&](const auto& one) { return is_same_folder(one.dir, dir); });
}

void set_aside_what_is_damaged(const Team& team, const Restored& restored) {
  for (const auto& folder : restored.damaged) {
    team.once([&] { set_aside(call_text(), folder); });
    log_once(LogLevel::warn, call_text() + ": " + in_quotes(folder) + " is damaged, and is now called " +
                                 in_quotes(folder + ".damaged"));
  }
}

void finish_saves_in(const Team& team, const std::string& dir) {
  for (const auto& one : state<Managers>().all)
    if (is_same_folder(one.dir, dir)) one.finish(team);
}

Manager::Manager(std::string dir, ManagerOptions options, std::source_location where) {
  const Call call("checkpoint::Manager", where);
  if (options.keep < 0 || options.every < 1)
    throw ArgumentError(call_text() + ": keep is " + std::to_string(options.keep) + " and every " +
                        std::to_string(options.every) + "; keep counts from 0 (all), every from 1");
  const Team team("checkpoint::Manager of " + in_quotes(dir));
  impl_ = std::make_unique<Impl>(Impl{std::move(dir), options});
  state<Managers>().all.push_back({impl_->dir,
                                   [impl = impl_.get()](const Team& all_ranks) { impl->finish(all_ranks); },
                                   [impl = impl_.get()] { impl->finish_alone(); }, impl_.get()});
  end_with_the_program();
}

Manager::~Manager() {
  if (impl_->session != session_number()) return;  // the runtime has ended, so the ranks cannot communicate
  std::erase_if(state<Managers>().all, [&](const auto& one) { return one.owner == impl_.get(); });
  const bool is_alone = std::uncaught_exceptions() > impl_->exceptions_before || !comm::is_started();
  try {
    if (is_alone)
      impl_->finish_alone();
    else
      impl_->finish(Team("the end of the checkpoint::Manager of " + in_quotes(impl_->dir)));
  } catch (const std::exception& error) {
    log(LogLevel::error, error.what());
    if (!is_alone) comm::owe_failure_by_exception();  // else the passing exception ends the program
  }
}

void Manager::wait(std::source_location where) {
  const Call call("checkpoint::Manager::wait", where);
  const Team team("checkpoint::Manager::wait for " + in_quotes(impl_->dir));
  impl_->finish(team);
}

bool Manager::save_leaves(int step, const std::vector<Array>& leaves, const std::string& structure, bool now,
                          const std::source_location& where) {
  const Call call(now ? "checkpoint::Manager::save_now" : "checkpoint::Manager::save", where);
  if (step < 0) throw ArgumentError(call_text() + ": step " + std::to_string(step) + " is negative");
  const bool is_due = now || step % impl_->options.every == 0;
  if (!is_due && impl_->under_way == nullptr) return false;
  for (const auto& x : leaves) check_usable(x);
  const Team team((now ? "checkpoint::Manager::save_now of step " : "checkpoint::Manager::save of step ") +
                  std::to_string(step) + " to " + in_quotes(impl_->dir) + tree_text(leaves, structure));
  if (!is_due) {
    impl_->finish_if_written(team);
    return false;
  }
  finish_saves_in(team, impl_->dir);
  if (is_there(team, impl_->dir, step)) return false;
  const auto steps = common_steps(team, impl_->dir);
  if (!steps.empty() && steps.front() > step && !std::exchange(impl_->warned_of_later_steps, true))
    log_once(LogLevel::warn, words_on_later_steps(impl_->dir, steps.front(), step));
  const std::string text = "the save of step " + std::to_string(step) + " (" + call_text() + ")";
  auto save =
      std::make_unique<StepSave>(team, text, impl_->dir, step, impl_->options.keep, leaves, structure);
  impl_->under_way = std::make_unique<UnderWay>(std::move(save), impl_->options.asynchronous && !now);
  if (now || !impl_->options.asynchronous) impl_->finish(team);
  return true;
}

std::pair<std::optional<int>, std::vector<Array>> Manager::restore_leaves(const std::vector<Array>& like,
                                                                          const std::string& structure,
                                                                          const std::source_location& where) {
  const Call call("checkpoint::Manager::restore", where);
  const Team team("checkpoint::Manager::restore from " + in_quotes(impl_->dir) + tree_text(like, structure));
  finish_saves_in(team, impl_->dir);
  if (common_steps(team, impl_->dir).empty()) return {};
  auto restored = restore_first_whole(team, candidates(team, impl_->dir, std::nullopt), like, structure);
  set_aside_what_is_damaged(team, restored);
  return {restored.step, std::move(restored.leaves)};
}

}  // namespace tessera::io::checkpoint
