// A value whose computation failed. The ranks that computed it know, the others take it for computed: all of
// them cut graphs at it alike. The first agreement of more ranks that uses the value tells the others.
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
// To be called in a catch block: the exception being handled.
FailurePtr caught_failure();

}  // namespace tessera
