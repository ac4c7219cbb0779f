// All state that tessera keeps between two calls, in one place: settings, devices, caches, open scopes.
//
//   struct Plans { std::unordered_map<Key, Plan> known; };   in the .cpp that owns it
//   state<Plans>().known.find(key)                           created at first use, later a load and a test
//
// The session lasts from the end of one runtime to the end of the next. Planning on abstract meshes needs no
// runtime: its state remains when one starts. When the runtime ends, all state is destroyed in the reverse
// order of creation (plans before the communicators that they hold), and the next use starts anew.
//
// State that outlives a runtime or belongs to the process is kept elsewhere: registries (ops, settings,
// rules: filled before main, constant afterwards), the pools behind Buffer and FFTW's planner, data that the
// watchdog's thread prints, and numbers that must never repeat. scripts/lint lists them by name.
//
// Threads: tessera is used from one thread, the one that started the runtime or else made the first call.
// check_thread() is called where an op is recorded, an evaluation begins, and ranks communicate.
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

// This session's T.
template <class T> T& state() {
  T*& slot = detail::session_slot<T>;
  if (slot == nullptr) [[unlikely]] {
    slot = new T();
    // The slot is emptied before its T is destroyed: a use during the destructor creates a new T, destroyed
    // next.
    detail::keep_until_end([] { delete std::exchange(detail::session_slot<T>, nullptr); });
  }
  return *slot;
}

// Starts a session: the runtime starts on this thread, and later calls must come from it.
void begin_session();
void end_session();
// A number that differs between sessions: objects bound to ranks in another session must be bound anew.
int session_number();

// ThreadError if this is not the session's thread. `call` names the call in errors: "matmul"; `where` is the
// user's line, if known.
inline void check_thread(const char* call, const std::source_location& where = {}) {
  if (detail::session_thread.load(std::memory_order_relaxed) != pthread_self()) [[unlikely]]
    detail::adopt_thread(call, where);
}
bool is_session_thread();

}  // namespace tessera
