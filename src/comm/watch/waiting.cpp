#include "comm/watch/waiting.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/current_call.hpp"
#include "base/log.hpp"
#include "base/session.hpp"
#include "base/settings.hpp"
#include "base/stop_request.hpp"
#include "base/text.hpp"
#include "comm/host/hosts.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/watch/agreement.hpp"
#include "comm/watch/failure.hpp"
#include "comm/watch/flight_record.hpp"
#include "comm/watch/neighbours.hpp"
#include "comm/watch/rank_status.hpp"
#include "comm/watch/recorder.hpp"
#include "comm/watch/work.hpp"

namespace tessera::comm {

std::size_t place_bytes() { return sizeof(RankStatus); }

namespace {

template <std::size_t N> void copy_text(std::array<char, N>& to, std::string_view text) {
  const std::size_t n = std::min(text.size(), N - 1);
  std::copy_n(text.begin(), n, to.begin());
  to[n] = '\0';
}

struct Watchdog {
  std::thread thread;
  std::mutex mutex;
  std::condition_variable stopping;
  bool stop = false;
  RankStatus* places = nullptr;
  int host_ranks = 1, hosts = 1;
  int rank = 0;
  double timeout_s = 0, work_limit_s = 0;
  const std::atomic<const char*>* current_call = nullptr;
  std::atomic<bool> patient = false;       // this rank's program has ended without an error
  std::atomic<bool> leaves_alone = false;  // this rank has failed; a deadline of its own ends the job
  std::atomic<const std::function<std::string()>*> intention = nullptr;
};

struct Watch {
  Recorder recorder;
  RankStatus alone{};
  RankStatus* my_status = &alone;
  Watchdog watchdog;
};
Watch& own_watch() { return state<Watch>(); }
// own_watch() while the watchdog runs, for callers on any thread.
std::atomic<Watch*> watched = nullptr;

std::string describe(const Call& call) {
  std::string text = "#" + std::to_string(call.number) + " " + call.what.data() + " on " + call.group.data();
  if (call.bytes > 0) text += ", " + format_bytes(call.bytes);
  if (call.purpose[0] != '\0') text += std::string(", for ") + call.purpose.data();
  return text;
}

std::string describe_place(Recorder& recorder) {
  const std::scoped_lock lock(recorder.mutex);
  if (recorder.calls == 0) return "has not talked to another rank yet";
  const Call& last = recorder.ring[static_cast<std::size_t>(recorder.calls - 1) % kept_calls];
  if (last.stop_ns == 0) return "waits since " + seconds_since(last.start_ns) + " in " + describe(last);
  return "computes since " + seconds_since(last.stop_ns) + "; its last call was " + describe(last);
}

std::string last_calls(Recorder& recorder, int most) {
  const std::scoped_lock lock(recorder.mutex);
  std::string text;
  for (std::int64_t i = std::max<std::int64_t>(0, recorder.calls - most); i < recorder.calls; ++i)
    text += (text.empty() ? "" : "; ") + describe(recorder.ring[static_cast<std::size_t>(i) % kept_calls]);
  return text;
}

HostNeighbours neighbours(const Watch& own) {
  const Watchdog& watchdog = own.watchdog;
  if (watchdog.places == nullptr) return {own.my_status, 1, own.my_status};
  return {watchdog.places, watchdog.host_ranks, own.my_status};
}

std::string limit_text(const Watchdog& watchdog, std::int64_t why) {
  const bool worked = why == 2;
  const double limit_s = worked ? watchdog.work_limit_s : watchdog.timeout_s;
  return std::string(worked ? "TESSERA_WORK_LIMIT" : "TESSERA_TIMEOUT") + " of " +
         std::to_string(static_cast<std::int64_t>(limit_s)) + " s: rank " + std::to_string(watchdog.rank) +
         " ";
}

// Text on this rank's own MPI call, if it is inside one.
std::string describe_own_mpi_call(const RankStatus& here) {
  const auto since = here.own_mpi_since_ns.load(std::memory_order_relaxed);
  if (since == 0) return "";
  return "waits since " + seconds_since(since) + " in " + here.own_mpi_call.data() +
         ", a call of its own to the MPI library; it ";
}

// States which facts no rank of this host can observe.
std::string limits_of_sight(const Watchdog& watchdog) {
  std::string text;
  if (watchdog.hosts > 1)
    text +=
        "\n         ranks of other hosts are not seen from here: where all of them wait too, they may wait "
        "for "
        "each other in a circle, which the lines of all hosts show";
  if (watchdog.host_ranks > most_host_ranks)
    text += "\n         circles are looked for among the first " + std::to_string(most_host_ranks) +
            " ranks of a host";
  return text;
}

[[noreturn]] void report_and_end(Watch& own) {
  const Watchdog& watchdog = own.watchdog;
  write_flight_record("time-out");
  const auto others = neighbours(own);
  const std::string text = describe_own_mpi_call(*own.my_status) + describe_place(own.recorder),
                    recent = last_calls(own.recorder, 4);
  log(LogLevel::error, limit_text(watchdog, others.expired()) + text +
                           (recent.empty() ? "" : "\n         its last calls: " + recent) +
                           others.describe_silent(static_cast<std::int64_t>(watchdog.timeout_s * 5e8)) +
                           limits_of_sight(watchdog));
  for (int beats = 0; beats < 30; ++beats) {  // until every rank of the host has reported its state
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    own.my_status->heartbeat_ns.store(now_ns(), std::memory_order_relaxed);
  }
  _exit(76);
}

// Writes this rank's intention into its place.
void report_intention(Watch& own) {
  Attendance& account = own.my_status->attendance;
  std::string words;
  try {
    if (const auto* describe = own.watchdog.intention.load()) words = (*describe)();
  } catch (const std::exception&) {}
  if (words.empty()) words = describe_place(own.recorder);
  copy_text(account.words, words);
  account.reported.store(1, std::memory_order_release);
}

// Ends the job because of ranks that wait for each other; this rank's main thread will never leave its
// rendezvous. The first of them reports for all.
[[noreturn]] void end_circle(Watch& own, const std::vector<int>& stuck) {
  const Watchdog& watchdog = own.watchdog;
  write_flight_record("circle of waiting ranks");
  report_intention(own);
  const auto all_reported = [&] {
    return std::all_of(stuck.begin(), stuck.end(), [&](int i) {
      return watchdog.places[i].attendance.reported.load(std::memory_order_acquire) != 0;
    });
  };
  const auto pause = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    own.my_status->heartbeat_ns.store(now_ns(), std::memory_order_relaxed);
  };
  RankStatus& first = watchdog.places[stuck.front()];
  if (&first == own.my_status) {
    for (int beats = 0; beats < 100 && !all_reported(); ++beats) pause();
    std::vector<std::string> texts;
    std::vector<int> ranks;
    for (const int i : stuck) {
      texts.emplace_back(watchdog.places[i].attendance.words.data());
      ranks.push_back(static_cast<int>(watchdog.places[i].rank));
    }
    log(LogLevel::error,
        "DisagreementError: the ranks disagree on what comes next, and wait for each other:\n" +
            list_by_text(texts, ranks) +
            "\nRanks that share a mesh must evaluate its arrays in the same order; look for a branch "
            "that depends on the rank.");
    first.attendance.reported.store(2, std::memory_order_release);
    std::fflush(nullptr);
  }
  for (int beats = 0; beats < 150 && first.attendance.reported.load(std::memory_order_acquire) != 2; ++beats)
    pause();
  _exit(status_disagreement);
}

void look_for_circles(Watch& own) {
  const Watchdog& watchdog = own.watchdog;
  if (watchdog.places == nullptr || own.my_status->attendance.group.load(std::memory_order_relaxed) == 0)
    return;
  const auto stuck = stuck_ranks(watchdog.host_ranks,
                                 [&](int i) -> const Attendance& { return watchdog.places[i].attendance; });
  for (const int i : stuck)
    if (&watchdog.places[i] == own.my_status) end_circle(own, stuck);
}

// Runs on the watchdog's thread and looks up no session state: the session's thread passes it in.
//
// A wait is too long when no rank of the host has made progress for TESSERA_TIMEOUT, or a rank that others
// wait for has been in the program's own code for TESSERA_WORK_LIMIT. The times restart after the whole job
// was suspended.
class Watcher {
 public:
  Watcher(Watch& own, WorkMeter& meter)
      : own_(own),
        watchdog_(own.watchdog),
        here_(*own.my_status),
        others_(neighbours(own)),
        meter_(meter),
        timeout_ns_(in_ns(watchdog_.timeout_s)),
        work_limit_ns_(in_ns(watchdog_.work_limit_s)),
        notice_ns_(std::min<std::int64_t>(timeout_ns_ / 2, 10'000'000'000)),
        looked_ns_(now_ns()),
        resumed_ns_(looked_ns_) {}

  void look() {
    const std::int64_t now = now_ns(), passed = now - std::exchange(looked_ns_, now);
    if (passed > std::max<std::int64_t>(timeout_ns_ / 4, 1'000'000'000)) resumed_ns_ = now;
    here_.heartbeat_ns.store(now, std::memory_order_relaxed);
    if (others_.expired() != 0) report_and_end(own_);
    look_for_signals(now);
    if (const std::int64_t since = here_.waiting_since_ns.load(std::memory_order_relaxed); since != 0)
      look_from_a_wait(now, since);
    else
      look_at_own_work(now, passed);
  }

 private:
  static std::int64_t in_ns(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

  // Warns about a pending stop signal, which agreements of some of the ranks do not pass on to all.
  void look_for_signals(std::int64_t now) {
    constexpr std::int64_t patience_ns = 5'000'000'000;
    if (!stop_is_not_agreed()) return void(asked_ns_ = 0);
    if (asked_ns_ == 0) asked_ns_ = now;
    if (asked_ns_ < 0 || now - asked_ns_ < patience_ns) return;
    asked_ns_ = -1;
    log(LogLevel::warn,
        "this rank was asked to stop 5 s ago, but all ranks together have evaluated nothing since, and only "
        "then do they save. A program that works on parts of the ranks calls preempted() in its loop, on all "
        "ranks");
  }

  void look_at_own_work(std::int64_t now, std::int64_t passed) {
    const bool in_library = watchdog_.current_call->load(std::memory_order_relaxed) != nullptr;
    const bool has_worked = meter_.has_worked(passed, in_library);
    if (in_library) here_.last_call_ns.store(now, std::memory_order_relaxed);
    const bool waits_elsewhere = here_.own_mpi_since_ns.load(std::memory_order_relaxed) != 0;
    if (has_worked && !waits_elsewhere) here_.progress_ns.store(now, std::memory_order_relaxed);
  }

  void look_from_a_wait(std::int64_t now, std::int64_t since) {
    look_for_circles(own_);
    const std::int64_t waited = now - std::max({since, resumed_ns_, others_.last_progress()});
    const bool has_reason = !watchdog_.patient || others_.somebody_is_silent(timeout_ns_ / 2) ||
                            others_.somebody_waits_elsewhere(timeout_ns_);
    if (has_reason && waited > timeout_ns_) end(1);
    if (!watchdog_.patient && work_limit_ns_ > 0 &&
        others_.somebody_works_longer_than(work_limit_ns_, std::max(since, resumed_ns_)))
      end(2);
    if (!watchdog_.patient || has_reason) give_notice(now, since, waited);
  }

  [[noreturn]] void end(std::int64_t why) {
    here_.expired = why;
    report_and_end(own_);
  }

  // Logs what this rank waits for, at intervals that double.
  void give_notice(std::int64_t now, std::int64_t since, std::int64_t waited) {
    if (std::exchange(noticed_wait_, since) != since)
      next_notice_ns_ = std::max(since, resumed_ns_) + notice_ns_;
    if (now > next_notice_ns_) {
      next_notice_ns_ = now + (now - since);
      const auto whom = others_.describe_those_waited_for();
      if (!whom.empty()) {
        log(LogLevel::warn, "waits since " + seconds_since(since) + " for " + whom + ". " + what_comes());
        warned_of_ = since;
      }
    }
    if (waited > timeout_ns_ / 4 && warned_of_ != since) {
      warned_of_ = since;
      log(LogLevel::warn,
          describe_place(own_.recorder) + "; the job ends when nobody has gone on for TESSERA_TIMEOUT");
    }
  }

  std::string what_comes() const {
    std::string text = "The job ends when nobody has gone on for TESSERA_TIMEOUT (" +
                       std::to_string(static_cast<std::int64_t>(watchdog_.timeout_s)) + " s)";
    if (work_limit_ns_ > 0)
      text +=
          ", or when a rank that others wait for has made no call of the library for TESSERA_WORK_LIMIT (" +
          std::to_string(work_limit_ns_ / 1'000'000'000) + " s)";
    return text + "; a debugger shows where it is (gdb -p)";
  }

  Watch& own_;
  Watchdog& watchdog_;
  RankStatus& here_;
  const HostNeighbours others_;
  WorkMeter& meter_;
  const std::int64_t timeout_ns_, work_limit_ns_, notice_ns_;
  std::int64_t warned_of_ = 0, noticed_wait_ = 0, looked_ns_, resumed_ns_, next_notice_ns_ = 0;
  std::int64_t asked_ns_ = 0;  // when this rank was asked to stop; 0: it was not; -1: warned of it
};

void watch(Watch& own, WorkMeter meter) {
  Watchdog& watchdog = own.watchdog;
  const auto period = std::chrono::milliseconds(
      std::clamp<std::int64_t>(static_cast<std::int64_t>(watchdog.timeout_s * 1000 / 8), 20, 250));
  Watcher watcher(own, meter);
  std::unique_lock lock(watchdog.mutex);
  while (!watchdog.stopping.wait_for(lock, period, [&] { return watchdog.stop; })) watcher.look();
}

}  // namespace

Purpose::Purpose(std::string_view text) : before_(std::exchange(own_watch().recorder.purpose, text)) {}
Purpose::~Purpose() { own_watch().recorder.purpose = before_; }
std::string current_purpose() { return std::string(own_watch().recorder.purpose); }

Waiting::Waiting(const char* call, const Communicator& comm, std::int64_t bytes)
    : exceptions_before_(std::uncaught_exceptions()) {
  check_thread(call);
  check_not_failed();
  Watch& own = own_watch();
  Recorder& recorder = own.recorder;
  outermost_ = recorder.depth++ == 0;
  if (!outermost_) return;
  const std::int64_t now = now_ns();
  {
    const std::scoped_lock lock(recorder.mutex);
    Call& entry = recorder.ring[static_cast<std::size_t>(recorder.calls++) % kept_calls];
    entry.number = recorder.calls;
    copy_text(entry.what, call);
    entry.bytes = bytes;
    entry.start_ns = now;
    entry.stop_ns.store(0, std::memory_order_relaxed);
    copy_text(entry.group, comm.name());
    copy_text(entry.purpose, recorder.purpose);
  }
  own.my_status->waiting_since_ns.store(now, std::memory_order_relaxed);
}

Waiting::~Waiting() {
  Watch& own = own_watch();
  Recorder& recorder = own.recorder;
  --recorder.depth;
  if (!outermost_) return;
  if (std::uncaught_exceptions() > exceptions_before_) mark_cut_off();
  const std::int64_t now = now_ns();
  own.my_status->progress_ns.store(now, std::memory_order_relaxed);
  own.my_status->last_call_ns.store(now, std::memory_order_relaxed);
  own.my_status->waiting_since_ns.store(0, std::memory_order_relaxed);
  recorder.ring[static_cast<std::size_t>(recorder.calls - 1) % kept_calls].stop_ns.store(
      now, std::memory_order_relaxed);
}

void keep_flight_record(const RankContext& place, const std::string& folder) {
  arm_flight_record(own_watch().recorder, place, folder);
}

std::string recent_calls(int most) { return last_calls(own_watch().recorder, most); }

std::string long_wait(double least_s) {
  Watch* const own = watched.load(std::memory_order_relaxed);
  const std::int64_t since =
      own == nullptr ? 0 : own->my_status->waiting_since_ns.load(std::memory_order_relaxed);
  const bool is_long = since != 0 && static_cast<double>(now_ns() - since) > least_s * 1e9;
  return is_long ? describe_place(own->recorder) : "";
}

struct Deadline::Timer {
  std::mutex mutex;
  std::condition_variable stopping;
  bool stop = false;
  std::thread thread;
};

Deadline::Deadline(double seconds, std::function<void()> expired) : timer_(std::make_unique<Timer>()) {
  timer_->thread = std::thread([timer = timer_.get(), seconds, expired = std::move(expired)] {
    std::unique_lock lock(timer->mutex);
    if (!timer->stopping.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return timer->stop; }))
      expired();
  });
}

Deadline::~Deadline() {
  {
    const std::scoped_lock lock(timer_->mutex);
    timer_->stop = true;
  }
  timer_->stopping.notify_all();
  timer_->thread.join();
}

void start_watchdog(int rank, void* places, int host_ranks, int place, double timeout_s) {
  Watch& own = own_watch();
  Watchdog& watchdog = own.watchdog;
  watchdog.rank = rank;
  watchdog.places = static_cast<RankStatus*>(places);
  watchdog.host_ranks = host_ranks;
  watchdog.hosts = host_count();
  watchdog.timeout_s = timeout_s;
  watchdog.stop = false;
  own.recorder.calls = 0;  // the messages of the start itself do not count
  watchdog.patient = false;
  if (places != nullptr) own.my_status = watchdog.places + place;
  watchdog.leaves_alone = false;
  own.my_status->process = getpid();
  own.my_status->heartbeat_ns = now_ns();
  own.my_status->rank = rank;
  own.my_status->last_call_ns = now_ns();
  watchdog.work_limit_s = settings().work_limit_s;
  watchdog.current_call = &name_of_current_call();
  watched.store(&own);
  if (timeout_s > 0) watchdog.thread = std::thread(watch, std::ref(own), WorkMeter());
}

void claim_place(void* places, int place, int rank) {
  if (places != nullptr) static_cast<RankStatus*>(places)[place].rank = rank;
}

OwnMpiCall::OwnMpiCall(const char* name) {
  Watch* const own = watched.load(std::memory_order_relaxed);
  if (own == nullptr || !is_session_thread() || own->recorder.depth > 0) return;
  place_ = own->my_status;
  copy_text(place_->own_mpi_call, name);
  place_->own_mpi_since_ns.store(now_ns(), std::memory_order_relaxed);
}
OwnMpiCall::~OwnMpiCall() {
  if (place_ == nullptr || watched.load(std::memory_order_relaxed) == nullptr) return;
  place_->own_mpi_since_ns.store(0, std::memory_order_relaxed);
  place_->progress_ns.store(now_ns(), std::memory_order_relaxed);
}

RankStatus& my_status() { return *own_watch().my_status; }
HostRanks host_ranks_of(const std::vector<int>& device_ids) {
  const Watchdog& watchdog = own_watch().watchdog;
  HostRanks set{};
  for (int i = 0; i < std::min(watchdog.host_ranks, most_host_ranks) && watchdog.places != nullptr; ++i)
    if (std::find(device_ids.begin(), device_ids.end(), watchdog.places[i].rank) != device_ids.end())
      set[static_cast<std::size_t>(i) / 64] |= std::uint64_t{1} << (i % 64);
  return set;
}
void set_intention(const std::function<std::string()>* describe) {
  own_watch().watchdog.intention = describe;
}
void stay_out_of_circles() { own_watch().watchdog.leaves_alone = true; }
bool stays_out_of_circles() { return own_watch().watchdog.leaves_alone; }

void wait_patiently() { own_watch().watchdog.patient = true; }

void stop_watchdog() {
  Watch& own = own_watch();
  watched.store(nullptr);
  Watchdog& watchdog = own.watchdog;
  {
    const std::scoped_lock lock(watchdog.mutex);
    watchdog.stop = true;
  }
  disarm_flight_record();
  watchdog.stopping.notify_all();
  if (watchdog.thread.joinable()) watchdog.thread.join();
  own.my_status = &own.alone;
  watchdog.places = nullptr;
}

}  // namespace tessera::comm
