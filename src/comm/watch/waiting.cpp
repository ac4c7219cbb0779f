#include "comm/watch/waiting.hpp"

#include <time.h>
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

#include "base/log.hpp"
#include "base/session.hpp"
#include "base/text.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/watch/agreement.hpp"
#include "comm/watch/failure.hpp"
#include "comm/watch/flight_record.hpp"
#include "comm/watch/places.hpp"
#include "comm/watch/recorder.hpp"

namespace tessera::comm {

std::size_t place_bytes() { return sizeof(Place); }

namespace {

// The coarse clock: milliseconds are exact enough here, and it costs a fifth of the fine one.
std::int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

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
  Place* places = nullptr;
  int host_ranks = 1;
  int rank = 0;
  double timeout_s = 0;
  std::atomic<bool> patient = false;       // this rank's program has ended well
  std::atomic<bool> leaves_alone = false;  // it has failed
  std::atomic<const std::function<std::string()>*> intention = nullptr;
};

struct Watch {
  Recorder recorder;
  Place alone{};
  Place* my_place = &alone;
  Watchdog watchdog;
};
Watch& own_watch() { return state<Watch>(); }

std::string describe(const Call& call) {
  std::string text = "#" + std::to_string(call.number) + " " + call.what.data() + " on " + call.group.data();
  if (call.bytes > 0) text += ", " + format_bytes(call.bytes);
  if (call.purpose[0] != '\0') text += std::string(", for ") + call.purpose.data();
  return text;
}

std::string seconds_since(std::int64_t start_ns) {
  const double s = static_cast<double>(now_ns() - start_ns) * 1e-9;
  return std::to_string(static_cast<std::int64_t>(s)) + "." + std::to_string(static_cast<int>(s * 10) % 10) +
         " s";
}

std::string describe_place(Recorder& recorder) {
  const std::scoped_lock lock(recorder.mutex);
  if (recorder.calls == 0) return "has not talked to another rank yet";
  const Call& last = recorder.ring[static_cast<std::size_t>(recorder.calls - 1) % kept_calls];
  if (last.stop_ns == 0) return "waits since " + seconds_since(last.start_ns) + " in " + describe(last);
  return "computes since " + seconds_since(last.stop_ns) + "; its last call was " + describe(last);
}

bool somebody_expired(const Watchdog& watchdog) {
  if (watchdog.places == nullptr) return false;
  for (int i = 0; i < watchdog.host_ranks; ++i)
    if (watchdog.places[i].expired.load(std::memory_order_relaxed) != 0) return true;
  return false;
}

std::string last_calls(Recorder& recorder, int most) {
  const std::scoped_lock lock(recorder.mutex);
  std::string text;
  for (std::int64_t i = std::max<std::int64_t>(0, recorder.calls - most); i < recorder.calls; ++i)
    text += (text.empty() ? "" : "; ") + describe(recorder.ring[static_cast<std::size_t>(i) % kept_calls]);
  return text;
}

// A heart that does not beat: the process was stopped, or the machine gives it no time.
bool is_silent(const Place& place, std::int64_t timeout_ns) {
  const std::int64_t last = place.heartbeat_ns.load(std::memory_order_relaxed);
  return last != 0 && now_ns() - last > std::max<std::int64_t>(timeout_ns / 2, 1'000'000'000);
}

// Silent ranks cannot speak for themselves: the first of the others does.
std::string describe_silent_ranks(const Watchdog& watchdog, const Place& mine, std::int64_t timeout_ns) {
  std::string text;
  const Place* speaker = nullptr;
  for (int i = 0; i < watchdog.host_ranks && watchdog.places != nullptr; ++i) {
    const Place& place = watchdog.places[i];
    if (!is_silent(place, timeout_ns))
      speaker = speaker == nullptr ? &place : speaker;
    else
      text += "\n         rank " + std::to_string(place.rank) + " (process " + std::to_string(place.process) +
              ") shows no sign of life since " + seconds_since(place.heartbeat_ns) +
              ": it was stopped (SIGSTOP, a debugger), or its machine gives it no time";
  }
  return speaker == &mine ? text : "";
}

[[noreturn]] void report_and_end(Watch& own) {
  const Watchdog& watchdog = own.watchdog;
  write_flight_record("time-out");
  const std::string text = describe_place(own.recorder), recent = last_calls(own.recorder, 4);
  log(LogLevel::error, "TESSERA_TIMEOUT of " + std::to_string(static_cast<std::int64_t>(watchdog.timeout_s)) +
                           " s: rank " + std::to_string(watchdog.rank) + " " + text +
                           (recent.empty() ? "" : "\n         its last calls: " + recent) +
                           describe_silent_ranks(watchdog, *own.my_place,
                                                 static_cast<std::int64_t>(watchdog.timeout_s * 1e9)));
  for (int beats = 0; beats < 30; ++beats) {  // every rank of the host says where it stands
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    own.my_place->heartbeat_ns.store(now_ns(), std::memory_order_relaxed);
  }
  _exit(76);
}

// Puts what this rank was about to do into its place.
void tell(Watch& own) {
  Attendance& account = own.my_place->attendance;
  std::string words;
  try {
    if (const auto* describe = own.watchdog.intention.load()) words = (*describe)();
  } catch (const std::exception&) {}
  if (words.empty()) words = describe_place(own.recorder);
  copy_text(account.words, words);
  account.told.store(1, std::memory_order_release);
}

// Ranks that wait for each other. This one's main thread stands in its meeting for good. The first of them
// speaks for all.
[[noreturn]] void end_circle(Watch& own, const std::vector<int>& stuck) {
  const Watchdog& watchdog = own.watchdog;
  write_flight_record("circle of waiting ranks");
  tell(own);
  const auto all_told = [&] {
    return std::all_of(stuck.begin(), stuck.end(), [&](int i) {
      return watchdog.places[i].attendance.told.load(std::memory_order_acquire) != 0;
    });
  };
  const auto pause = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    own.my_place->heartbeat_ns.store(now_ns(), std::memory_order_relaxed);
  };
  Place& first = watchdog.places[stuck.front()];
  if (&first == own.my_place) {
    for (int beats = 0; beats < 100 && !all_told(); ++beats) pause();
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
    first.attendance.told.store(2, std::memory_order_release);
    std::fflush(nullptr);
  }
  for (int beats = 0; beats < 150 && first.attendance.told.load(std::memory_order_acquire) != 2; ++beats)
    pause();
  _exit(status_disagreement);
}

void look_for_circles(Watch& own) {
  const Watchdog& watchdog = own.watchdog;
  if (watchdog.places == nullptr || own.my_place->attendance.group.load(std::memory_order_relaxed) == 0)
    return;
  const auto stuck = stuck_places(watchdog.host_ranks,
                                  [&](int i) -> const Attendance& { return watchdog.places[i].attendance; });
  for (const int i : stuck)
    if (&watchdog.places[i] == own.my_place) end_circle(own, stuck);
}

// What this process has used so far. A rank that waits polls, which is no work: asked only while it computes.
struct Work {
  std::int64_t cpu_ns = 0, file_bytes = 0;
};
Work work_so_far() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  Work work{std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec, 0};
  if (std::FILE* file = std::fopen("/proc/self/io", "re")) {
    long long read = 0, written = 0;
    if (std::fscanf(file, "rchar: %lld wchar: %lld", &read, &written) == 2) work.file_bytes = read + written;
    std::fclose(file);
  }
  return work;
}

// More than the watchdog itself uses.
bool has_worked(const Work& before, const Work& now, std::int64_t passed_ns) {
  return now.cpu_ns - before.cpu_ns > passed_ns / 50 || now.file_bytes - before.file_bytes > 65536;
}

// When somebody of this host was last seen to go on.
std::int64_t last_progress(const Watchdog& watchdog) {
  std::int64_t last = 0;
  for (int i = 0; i < watchdog.host_ranks && watchdog.places != nullptr; ++i)
    last = std::max(last, watchdog.places[i].progress_ns.load(std::memory_order_relaxed));
  return last;
}

bool somebody_is_silent(const Watchdog& watchdog, std::int64_t timeout_ns) {
  for (int i = 0; i < watchdog.host_ranks && watchdog.places != nullptr; ++i)
    if (is_silent(watchdog.places[i], timeout_ns)) return true;
  return false;
}

// A rank that computes is never ended: nobody but its program knows how long that takes. Those who wait for
// it say so once in a while, so that an endless loop does not look like work.
void report_long_work(const Watchdog& watchdog, const Place& mine, std::int64_t since) {
  std::string workers;
  for (int i = 0; i < watchdog.host_ranks && watchdog.places != nullptr; ++i) {
    const Place& place = watchdog.places[i];
    const auto its_wait = place.waiting_since_ns.load(std::memory_order_relaxed);
    if (its_wait != 0) {
      if (&place < &mine) return;  // the first who waits speaks
      continue;
    }
    workers += (workers.empty() ? "" : ", ") + std::to_string(place.rank) + " (process " +
               std::to_string(place.process) + ")";
  }
  if (workers.empty()) return;
  log(LogLevel::warn, "waits since " + seconds_since(since) + " for rank " + workers +
                          ", which computes or works on files. A rank that works is not ended, however long: "
                          "if that is an endless loop, look at it with a debugger (gdb -p)");
}

// On the watchdog's thread, which asks for no state: the session's thread hands it over. A wait is too long
// when nobody of the host has gone on for so long. A job that was suspended as a whole starts counting anew.
void watch(Watch& own) {
  Watchdog& watchdog = own.watchdog;
  Place& here = *own.my_place;
  const auto timeout_ns = static_cast<std::int64_t>(watchdog.timeout_s * 1e9);
  const auto period = std::chrono::milliseconds(std::clamp<std::int64_t>(timeout_ns / 8'000'000, 20, 250));
  std::int64_t warned_of = 0, looked_ns = now_ns(), resumed_ns = looked_ns, next_report_ns = 0;
  Work before = work_so_far();
  std::unique_lock lock(watchdog.mutex);
  while (!watchdog.stopping.wait_for(lock, period, [&] { return watchdog.stop; })) {
    const std::int64_t now = now_ns(), passed = now - std::exchange(looked_ns, now);
    if (passed > std::max<std::int64_t>(timeout_ns / 4, 1'000'000'000)) resumed_ns = now;
    here.heartbeat_ns.store(now, std::memory_order_relaxed);
    if (somebody_expired(watchdog)) report_and_end(own);
    const std::int64_t since = here.waiting_since_ns.load(std::memory_order_relaxed);
    const Work work = since == 0 ? work_so_far() : before;
    if (since == 0 && has_worked(std::exchange(before, work), work, passed))
      here.progress_ns.store(now, std::memory_order_relaxed);
    if (since == 0) {
      next_report_ns = 0;
      continue;
    }
    look_for_circles(own);
    if (watchdog.patient && !somebody_is_silent(watchdog, timeout_ns)) continue;
    const std::int64_t waited = now - std::max({since, resumed_ns, last_progress(watchdog)});
    if (waited > timeout_ns) {
      here.expired = 1;
      report_and_end(own);
    }
    if (next_report_ns == 0) next_report_ns = since + timeout_ns;
    if (now > next_report_ns && waited <= timeout_ns / 4) {
      next_report_ns = now + (now - since);  // ever more rarely
      report_long_work(watchdog, here, since);
    }
    if (waited > timeout_ns / 4 && warned_of != since) {
      warned_of = since;
      log(LogLevel::warn,
          describe_place(own.recorder) + "; the job ends when nobody has gone on for TESSERA_TIMEOUT");
    }
  }
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
  own.my_place->waiting_since_ns.store(now, std::memory_order_relaxed);
}

Waiting::~Waiting() {
  Watch& own = own_watch();
  Recorder& recorder = own.recorder;
  --recorder.depth;
  if (!outermost_) return;
  if (std::uncaught_exceptions() > exceptions_before_) mark_cut_off();
  const std::int64_t now = now_ns();
  own.my_place->progress_ns.store(now, std::memory_order_relaxed);
  own.my_place->waiting_since_ns.store(0, std::memory_order_relaxed);
  recorder.ring[static_cast<std::size_t>(recorder.calls - 1) % kept_calls].stop_ns.store(
      now, std::memory_order_relaxed);
}

void keep_flight_record(const RankPlace& place, const std::string& folder) {
  arm_flight_record(own_watch().recorder, place, folder);
}

std::string recent_calls(int most) { return last_calls(own_watch().recorder, most); }

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
  watchdog.places = static_cast<Place*>(places);
  watchdog.host_ranks = host_ranks;
  watchdog.timeout_s = timeout_s;
  watchdog.stop = false;
  own.recorder.calls = 0;  // what the start itself sent does not count
  watchdog.patient = false;
  if (places != nullptr) own.my_place = watchdog.places + place;
  watchdog.leaves_alone = false;
  own.my_place->process = getpid();
  own.my_place->heartbeat_ns = now_ns();
  own.my_place->rank = rank;
  if (timeout_s > 0) watchdog.thread = std::thread(watch, std::ref(own));
}

void claim_place(void* places, int place, int rank) {
  if (places != nullptr) static_cast<Place*>(places)[place].rank = rank;
}

Place& my_place() { return *own_watch().my_place; }
PlaceSet places_of(const std::vector<int>& device_ids) {
  const Watchdog& watchdog = own_watch().watchdog;
  PlaceSet set{};
  for (int i = 0; i < std::min(watchdog.host_ranks, most_places) && watchdog.places != nullptr; ++i)
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
  Watchdog& watchdog = own.watchdog;
  {
    const std::scoped_lock lock(watchdog.mutex);
    watchdog.stop = true;
  }
  disarm_flight_record();
  watchdog.stopping.notify_all();
  if (watchdog.thread.joinable()) watchdog.thread.join();
  own.my_place = &own.alone;
  watchdog.places = nullptr;
}

}  // namespace tessera::comm
