// The user's call: the name and the line that errors, recorded ops and explain cite.
//
//   Array softmax(const Operand& x, int axis) {
//     const Call call("softmax", x.where);     the user's call begins
//     ... exp(x - max(x, axis, true)) ...      these open calls of their own, which change nothing
//     throw ShapeError(call_text() + ...)      "softmax at train.cpp:12"
//   }
//
// The outermost Call is the user's. When the library calls the user back (a traced body, a callback), a
// UserCode scope makes the lines inside count again. Ops that a rule records later on behalf of an earlier
// call (a gradient, a batch) cite that call: OnBehalfOf. Scopes nest, cost a few stores and allocate nothing.
#pragma once
#include <source_location>
#include <string>

namespace tessera {

// Names must live as long as the program: literals and the names of op records.
struct UserCall {
  const char* name = nullptr;  // nullptr: no call
  std::source_location where = {};
};

// The call that is being served; without a name if there is none.
const UserCall& current_call();
// "softmax at train.cpp:12": the beginning of an error's text.
std::string call_text();
std::string call_text(const UserCall&);
// Returns `otherwise` if no call is being served, as in planning without a runtime.
std::string call_text_or(const std::string& otherwise);

// Makes a call the current one for its lifetime.
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

// The scope of a public function: the outermost one counts. ThreadError on a thread other than the session's.
class Call : CallScope {
 public:
  Call(const char* name, std::source_location where);
};
// The scope of a user's function that the library calls.
class UserCode : CallScope {
 public:
  UserCode() : CallScope({}) {}
};
// The scope of work on behalf of an earlier call.
class OnBehalfOf : CallScope {
 public:
  explicit OnBehalfOf(const UserCall& earlier) : CallScope(earlier) {}
};

}  // namespace tessera
