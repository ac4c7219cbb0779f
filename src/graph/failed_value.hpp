// A value whose computation failed. The ranks that computed it know of the failure, other ranks take it for
// computed; all of them cut graphs at it in the same way. The other ranks learn of the failure in the first
// agreement that includes them and uses the value.
#pragma once
#include <memory>
#include <string>

#include "graph/node.hpp"

namespace tessera {

struct FailedValue {
  enum Kind : char { lin_alg = 'l', nan = 'n', memory = 'm', other = 'u' };
  Kind kind;
  std::string text;  // text of the first failure
};
using FailurePtr = std::shared_ptr<const FailedValue>;

// The value's failure; nullptr if it has a value, or was not computed yet.
inline const FailurePtr& failure_of(const Array& x) {
  static const FailurePtr none;
  const auto& stored = output_of(x).stored;
  return stored ? stored->failure : none;
}

// Throws the original exception again.
[[noreturn]] void raise(const FailedValue&);
// The exception being handled, as a failure. To be called in a catch block.
FailurePtr caught_failure();

}  // namespace tessera
