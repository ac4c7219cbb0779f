// All state that tessera keeps between two calls, in one place: settings, devices, caches, scopes that are
// open.
//
//   struct Plans { std::unordered_map<Key, Plan> known; };   in the .cpp that owns it
//   state<Plans>().known.find(key)                           made at first use, then a load and a test
//
// The session is what stands between two ends of a runtime. Planning on abstract meshes needs no runtime:
// what it has left is there when one starts. When the runtime ends, all goes in the reverse order of its
// making (plans before the communicators that they hold), and the next use begins afresh.
//
// Not here, because it outlives a runtime or belongs to the process: registries (ops, settings, rules: filled
// before main, constant afterwards), the pools behind Buffer and FFTW's planner, what the watchdog's thread
// prints with, and numbers that must not come twice. scripts/lint knows them by name.
//
// Threads: tessera is used from one thread, the one that started the runtime or else made the first call.
// check_thread() stands where an op is recorded, an evaluation begins and ranks talk.
#pragma once
#include <pthread.h>

#include <atomic>
#include <source_location>
#include <utility>

namespace tessera {

namespace detail {
template <class T> inline constinit T* session_slot = nullptr;
void keep_until_end(void (*destroy)());

inline constinit std::atomic<pthread_t> session_thread{};
void adopt_thread(const char* call, const std::source_location& where);
}  // namespace detail

// The T of this session.
template <class T> T& state() {
  T*& slot = detail::session_slot<T>;
  if (slot == nullptr) [[unlikely]] {
    slot = new T();
    // The slot is empty while its T goes: what asks for it then gets a new one, which goes next.
    detail::keep_until_end([] { delete std::exchange(detail::session_slot<T>, nullptr); });
  }
  return *slot;
}

// The runtime starts on this thread: calls come from here from now on.
void begin_session();
void end_session();
// Different in each session: what was bound to ranks in another one must be bound anew.
int session_number();

// ThreadError when this is not the session's thread. `call` as errors name it: "matmul"; `where` the user's
// line, if it is known.
inline void check_thread(const char* call, const std::source_location& where = {}) {
  if (detail::session_thread.load(std::memory_order_relaxed) != pthread_self()) [[unlikely]]
    detail::adopt_thread(call, where);
}
bool is_session_thread();

}  // namespace tessera
