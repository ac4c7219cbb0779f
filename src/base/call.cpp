#include "base/call.hpp"

#include <atomic>
#include <utility>

#include "base/current_call.hpp"
#include "base/session.hpp"
#include "base/text.hpp"

namespace tessera {
namespace {

struct Current {
  UserCall call;
  std::atomic<const char*> name = nullptr;  // the call's name, for other threads
};
UserCall& current() { return state<Current>().call; }

// Replaces the current call and returns the previous one.
UserCall make_current(const UserCall& call) {
  auto& now = state<Current>();
  now.name.store(call.name, std::memory_order_relaxed);
  return std::exchange(now.call, call);
}

UserCall outermost(const char* name, const std::source_location& where) {
  check_thread(name, where);
  return current().name != nullptr ? current() : UserCall{name, where};
}

}  // namespace

const UserCall& current_call() { return current(); }

CallScope::CallScope(const UserCall& call) : outer_(make_current(call)) {}
CallScope::~CallScope() { make_current(outer_); }
const std::atomic<const char*>& name_of_current_call() { return state<Current>().name; }

Call::Call(const char* name, std::source_location where) : CallScope(outermost(name, where)) {}

std::string call_text(const UserCall& call) {
  if (call.name == nullptr) return "tessera";
  if (call.where.line() == 0) return call.name;
  return std::string(call.name) + " at " + format_site(call.where);
}
std::string call_text() { return call_text(current()); }
std::string call_text_or(const std::string& otherwise) {
  return current().name != nullptr ? call_text() : otherwise;
}

}  // namespace tessera
