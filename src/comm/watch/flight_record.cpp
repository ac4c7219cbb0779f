#include "comm/watch/flight_record.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tessera::comm {
namespace {

constexpr std::array crash_signals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// All data that the signal handlers need, prepared beforehand.
struct Armed {
  std::atomic<const Recorder*> recorder = nullptr;
  bool named = false;  // TESSERA_FLIGHT_RECORD names a folder
  int rank = 0, ranks = 1;
  std::uint64_t job = 0;
  std::array<char, 128> host{};
  std::array<char, 4096> folder{}, path{}, unfinished{};
  std::array<struct sigaction, crash_signals.size()> crash_before{};
  struct sigaction on_demand_before {};
  bool on_demand = false;
  std::atomic<bool> writing = false;
  std::array<char, 32768> text{};
  std::size_t used = 0;
};
Armed& armed() {
  static Armed one;  // outlives the session, since a signal may come at any time
  return one;
}

void put(std::string_view words) {
  Armed& a = armed();
  const std::size_t n = std::min(words.size(), a.text.size() - a.used);
  std::memcpy(a.text.data() + a.used, words.data(), n);
  a.used += n;
}
void put(std::int64_t number) {
  std::array<char, 24> digits{};
  std::size_t at = digits.size();
  auto left = number < 0 ? -static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
  do digits[--at] = static_cast<char>('0' + left % 10);
  while ((left /= 10) > 0);
  if (number < 0) digits[--at] = '-';
  put(std::string_view(digits.data() + at, digits.size() - at));
}
template <std::size_t N> std::string_view words_in(const std::array<char, N>& text) {
  return {text.data(), strnlen(text.data(), N)};
}

// Writes a call as fields between tabs, times in nanoseconds.
void put_call(const Call& call) {
  put("call\t");
  for (const std::int64_t number : {call.number, call.bytes, call.start_ns, call.stop_ns.load()})
    put(number), put("\t");
  put(words_in(call.what)), put("\t"), put(words_in(call.group)), put("\t"), put(words_in(call.purpose));
  put("\n");
}

void put_record(const Recorder& recorder, const char* reason) {
  Armed& a = armed();
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  a.used = 0;
  put("tessera flight record 1\nrank "), put(std::int64_t{a.rank}), put("\nranks "),
      put(std::int64_t{a.ranks});
  put("\nhost "), put(words_in(a.host)), put("\nprocess "), put(std::int64_t{getpid()});
  timespec date{};
  clock_gettime(CLOCK_REALTIME, &date);
  put("\njob "), put(static_cast<std::int64_t>(a.job >> 1));
  put("\ndate "), put(std::int64_t{date.tv_sec});
  put("\nreason "), put(reason);
  put("\nclock "), put(std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec), put("\n");
  // A call that is being recorded at this moment may be garbled, since no lock is taken here.
  const std::int64_t calls = recorder.calls;
  for (std::int64_t i = std::max<std::int64_t>(0, calls - static_cast<std::int64_t>(kept_calls)); i < calls;
       ++i)
    put_call(recorder.ring[static_cast<std::size_t>(i) % kept_calls]);
}

void write_file() {
  Armed& a = armed();
  mkdir(a.folder.data(), 0777);
  const int file = open(a.unfinished.data(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return;
  std::size_t done = 0;
  while (done < a.used) {
    const auto n = write(file, a.text.data() + done, a.used - done);
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  close(file);
  if (done == a.used) rename(a.unfinished.data(), a.path.data());
}

void write_now(const char* reason) noexcept {
  Armed& a = armed();
  const Recorder* recorder = a.recorder.load();
  if (recorder == nullptr || a.writing.exchange(true)) return;
  const int error = errno;
  put_record(*recorder, reason);
  write_file();
  errno = error;
  a.writing = false;
}

const char* name_of(int signal) {
  switch (signal) {
    case SIGSEGV: return "crash SIGSEGV";
    case SIGBUS: return "crash SIGBUS";
    case SIGFPE: return "crash SIGFPE";
    case SIGILL: return "crash SIGILL";
    default: return "crash SIGABRT";
  }
}

void on_demand(int) { write_now("SIGUSR2"); }

// Writes the record, then chains to the handler that was installed before.
void on_crash(int signal) {
  write_now(name_of(signal));
  for (std::size_t s = 0; s < crash_signals.size(); ++s)
    if (crash_signals[s] == signal) sigaction(signal, &armed().crash_before[s], nullptr);
  raise(signal);
}

void listen_for(int signal, void (*handler)(int), struct sigaction* before) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_ONSTACK | (handler == on_crash ? static_cast<int>(SA_NODEFER) : 0);
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, before);
}

template <std::size_t N> bool set(std::array<char, N>& to, const std::string& text) {
  if (text.size() >= N) return false;
  std::copy_n(text.c_str(), text.size() + 1, to.begin());
  return true;
}

std::string absolute(const std::string& folder) {
  std::array<char, 4096> here{};
  if (folder.starts_with('/') || getcwd(here.data(), here.size()) == nullptr) return folder;
  return std::string(here.data()) + "/" + folder;
}

}  // namespace

void arm_flight_record(const Recorder& recorder, const RankContext& place, const std::string& folder) {
  Armed& a = armed();
  a.named = !folder.empty();
  a.rank = place.rank, a.ranks = place.ranks, a.job = place.job;
  const std::string where = absolute(a.named ? folder : "tessera-flight");
  std::array<char, 24> file{};
  std::snprintf(file.data(), file.size(), "/rank-%06d.txt", place.rank);
  if (!set(a.host, place.host.substr(0, 127)) || !set(a.folder, where) || !set(a.path, where + file.data()) ||
      !set(a.unfinished, where + file.data() + ".part"))
    return;
  a.recorder = &recorder;
  struct sigaction present {};
  sigaction(SIGUSR2, nullptr, &present);
  a.on_demand = present.sa_handler == SIG_DFL;
  if (a.on_demand) listen_for(SIGUSR2, on_demand, &a.on_demand_before);
  for (std::size_t s = 0; a.named && s < crash_signals.size(); ++s)
    listen_for(crash_signals[s], on_crash, &a.crash_before[s]);
}

void disarm_flight_record() {
  Armed& a = armed();
  if (a.recorder.exchange(nullptr) == nullptr) return;
  if (a.on_demand) sigaction(SIGUSR2, &a.on_demand_before, nullptr);
  for (std::size_t s = 0; a.named && s < crash_signals.size(); ++s)
    sigaction(crash_signals[s], &a.crash_before[s], nullptr);
}

void write_flight_record(const char* reason) noexcept {
  if (armed().named) write_now(reason);
}

}  // namespace tessera::comm
