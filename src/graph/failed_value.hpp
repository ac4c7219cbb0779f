// A value whose computation failed. The ranks that computed it know, the others take it for computed: graphs
// are cut at it alike on all of them. The first agreement of more ranks that uses it tells them.
#pragma once
#include <memory>
#include <string>

#include "graph/node.hpp"

namespace tessera {

struct FailedValue {
  enum Kind : char { lin_alg = 'l', nan = 'n', memory = 'm', other = 'u' };
  Kind kind;
  std::string text;  // of the first error
};
using FailurePtr = std::shared_ptr<const FailedValue>;

// nullptr: it has a value, or was not computed yet.
inline const FailurePtr& failure_of(const Array& x) {
  static const FailurePtr none;
  const auto& stored = output_of(x).stored;
  return stored ? stored->failure : none;
}

// As the exception that it was.
[[noreturn]] void raise(const FailedValue&);
// In a catch block: what is being handled.
FailurePtr caught_failure();

}  // namespace tessera
