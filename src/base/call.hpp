// The user's call: the name and the line that errors, recorded ops and explain cite.
//
//   Array softmax(const Operand& x, int axis) {
//     const Call call("softmax", x.where);     the user's call begins
//     ... exp(x - max(x, axis, true)) ...      these open calls of their own, which change nothing
//     throw ShapeError(call_text() + ...)      "softmax at train.cpp:12"
//   }
//
// The outermost Call is the user's. Where the library calls the user back (a traced body, a callback), a
// UserCode makes the lines there count again. What a rule records later on behalf of an earlier call (a
// gradient, a batch) cites that one: OnBehalfOf. Scopes nest, cost a few
// stores and allocate nothing.
#pragma once
#include <source_location>
#include <string>

namespace tessera {

// Names live as long as the program: literals and the names of op records.
struct UserCall {
  const char* name = nullptr;  // nullptr: nothing was called
  std::source_location where = {};
};

// The call that is being served; without a name when none is.
const UserCall& current_call();
// "softmax at train.cpp:12": the beginning of an error's text.
std::string call_text();
std::string call_text(const UserCall&);
// `otherwise` where no call is being served, as in planning alone.
std::string call_text_or(const std::string& otherwise);

// Makes one call the current one while it lives.
class CallScope {
 public:
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 protected:
  explicit CallScope(const UserCall&);
  ~CallScope();

 private:
  UserCall outer_;
};

// The scope of a public function: the outermost one counts. ThreadError from another thread than the
// session's.
class Call : CallScope {
 public:
  Call(const char* name, std::source_location where);
};
// Around a function of the user that the library calls.
class UserCode : CallScope {
 public:
  UserCode() : CallScope({}) {}
};
// Around what serves an earlier call.
class OnBehalfOf : CallScope {
 public:
  explicit OnBehalfOf(const UserCall& earlier) : CallScope(earlier) {}
};

}  // namespace tessera
