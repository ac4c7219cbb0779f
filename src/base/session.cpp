#include "base/session.hpp"

#include <tessera/error.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/child_process.hpp"
#include "base/text.hpp"

namespace tessera {
namespace {

struct Session {
  std::vector<void (*)()> destroy;  // in the order of creation
  int number = 0;
  std::string thread, why;  // the session's thread, for texts: "thread 4711 ('worker')"
};
Session& session() {
  static auto* instance = new Session;  // never destroyed: static arrays use devices during exit
  return *instance;
}

// The thread's name as ps, top and debuggers show it.
std::string describe_this_thread() {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  return "thread " + std::to_string(syscall(SYS_gettid)) +
         (*name != '\0' ? " (" + in_quotes(name) + ")" : "");
}

void take_over(const char* why) {
  session().thread = describe_this_thread();
  session().why = why;
}

}  // namespace

namespace detail {

void keep_until_end(void (*destroy)()) { session().destroy.push_back(destroy); }

void adopt_thread(const char* call, const std::source_location& where) {
  if (is_child_of_rank_with_peers())
    throw ThreadError(call + (where.line() == 0 ? std::string() : " at " + format_site(where)) +
                      " was called in a process that fork() has made of a rank: MPI belongs to the rank, "
                      "and a copy of it cannot speak to the others. Compute in the rank and hand values "
                      "over, or start processes that begin afresh (exec; in Python multiprocessing's "
                      "'spawn')");
  pthread_t nobody{};
  if (session_thread.compare_exchange_strong(nobody, pthread_self())) {
    take_over("made the first call");
    return;
  }
  throw ThreadError(
      call + (where.line() == 0 ? std::string() : " at " + format_site(where)) + " was called on " +
      describe_this_thread() + ", but " + session().thread + " " + session().why +
      ": tessera is used from one thread of a process, because all ranks must meet the same calls "
      "in the same order. Hand the work to that thread, for example through a queue; array "
      "handles may be copied and released anywhere");
}

}  // namespace detail

void begin_session() {
  detail::session_thread = pthread_self();
  take_over("started the runtime");
}

void end_session() {
  auto& all = session().destroy;
  while (!all.empty()) {
    const auto destroy = all.back();
    all.pop_back();
    destroy();
  }
  ++session().number;
  detail::session_thread = pthread_t{};
}

int session_number() { return session().number; }
bool is_session_thread() { return detail::session_thread == pthread_self(); }

}  // namespace tessera
