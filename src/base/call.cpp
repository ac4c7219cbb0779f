#include "base/call.hpp"

#include <utility>

#include "base/session.hpp"
#include "base/text.hpp"

namespace tessera {
namespace {

struct Current {
  UserCall call;
};
UserCall& current() { return state<Current>().call; }

UserCall outermost(const char* name, const std::source_location& where) {
  check_thread(name, where);
  return current().name != nullptr ? current() : UserCall{name, where};
}

}  // namespace

const UserCall& current_call() { return current(); }

CallScope::CallScope(const UserCall& call) : outer_(std::exchange(current(), call)) {}
CallScope::~CallScope() { current() = outer_; }

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
