#include "comm/watch/waiting.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/log.hpp"
#include "base/session.hpp"
#include "base/text.hpp"
#include "comm/mpi/communicator.hpp"

namespace tessera::comm {

// Times are of the monotonic clock, which all processes of a host share.
struct Place {
  std::atomic<std::int64_t> waiting_since_ns;  // 0: computing
  std::atomic<std::int64_t> expired;           // 1: this rank's wait was too long
};
std::size_t place_bytes() { return sizeof(Place); }

namespace {

// The coarse clock: milliseconds are exact enough here, and it costs a fifth of the fine one.
std::int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

struct Call {
  std::int64_t number = 0, bytes = 0, start_ns = 0;
  std::atomic<std::int64_t> stop_ns{0};  // 0: it goes on
  std::array<char, 40> what{};
  std::array<char, 40> group{};
  std::array<char, 96> purpose{};
};

template <std::size_t N> void copy_text(std::array<char, N>& to, std::string_view text) {
  const std::size_t n = std::min(text.size(), N - 1);
  std::copy_n(text.begin(), n, to.begin());
  to[n] = '\0';
}

constexpr std::size_t kept_calls = 64;

struct Recorder {
  std::mutex mutex;  // of the ring: taken by the main thread, and by the watchdog when it reports
  std::array<Call, kept_calls> ring;
  std::int64_t calls = 0;
  int depth = 0;
  std::string_view purpose;
};

struct Watchdog {
  std::thread thread;
  std::mutex mutex;
  std::condition_variable stopping;
  bool stop = false;
  Place* places = nullptr;
  int host_ranks = 1;
  int rank = 0;
  double timeout_s = 0;
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

[[noreturn]] void report_and_end(Watch& own) {
  const Watchdog& watchdog = own.watchdog;
  const std::string text = describe_place(own.recorder), recent = last_calls(own.recorder, 4);
  log(LogLevel::error, "TESSERA_TIMEOUT of " + std::to_string(static_cast<std::int64_t>(watchdog.timeout_s)) +
                           " s: rank " + std::to_string(watchdog.rank) + " " + text +
                           (recent.empty() ? "" : "\n         its last calls: " + recent));
  std::this_thread::sleep_for(
      std::chrono::milliseconds(1500));  // every rank of the host says where it stands
  _exit(76);
}

// On the watchdog's thread, which asks for no state: the session's thread hands it over.
void watch(Watch& own) {
  Watchdog& watchdog = own.watchdog;
  const Place& here = *own.my_place;
  const auto timeout_ns = static_cast<std::int64_t>(watchdog.timeout_s * 1e9);
  const auto period = std::chrono::milliseconds(std::clamp<std::int64_t>(timeout_ns / 8'000'000, 20, 250));
  std::int64_t warned_of = 0;
  std::unique_lock lock(watchdog.mutex);
  while (!watchdog.stopping.wait_for(lock, period, [&] { return watchdog.stop; })) {
    if (somebody_expired(watchdog)) report_and_end(own);
    const std::int64_t since = here.waiting_since_ns.load(std::memory_order_relaxed);
    if (since == 0) continue;
    const std::int64_t waited = now_ns() - since;
    if (waited > timeout_ns) {
      own.my_place->expired = 1;
      report_and_end(own);
    }
    if (waited > timeout_ns / 4 && warned_of != since) {
      warned_of = since;
      log(LogLevel::warn, describe_place(own.recorder) + "; the job ends when this reaches TESSERA_TIMEOUT");
    }
  }
}

}  // namespace

Purpose::Purpose(std::string_view text) : before_(std::exchange(own_watch().recorder.purpose, text)) {}
Purpose::~Purpose() { own_watch().recorder.purpose = before_; }
std::string current_purpose() { return std::string(own_watch().recorder.purpose); }

Waiting::Waiting(const char* call, const Communicator& comm, std::int64_t bytes) {
  check_thread(call);
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
  own.my_place->waiting_since_ns.store(0, std::memory_order_relaxed);
  recorder.ring[static_cast<std::size_t>(recorder.calls - 1) % kept_calls].stop_ns.store(
      now_ns(), std::memory_order_relaxed);
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
  if (places != nullptr) own.my_place = watchdog.places + place;
  if (timeout_s > 0) watchdog.thread = std::thread(watch, std::ref(own));
}

void stop_watchdog() {
  Watch& own = own_watch();
  Watchdog& watchdog = own.watchdog;
  {
    const std::scoped_lock lock(watchdog.mutex);
    watchdog.stop = true;
  }
  watchdog.stopping.notify_all();
  if (watchdog.thread.joinable()) watchdog.thread.join();
  own.my_place = &own.alone;
  watchdog.places = nullptr;
}

}  // namespace tessera::comm
