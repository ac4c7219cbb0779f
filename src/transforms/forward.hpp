// Forward-mode rules for ops whose tangents are expensive by transposing twice: loops, which would store
// every step's values.
#pragma once
#include <vector>

#include "graph/op.hpp"

namespace tessera {

struct JvpArgs {
  const Node& node;
  std::span<const Array> in;        // the node's inputs
  std::span<const Array> out;       // its outputs
  std::span<const Array> tangents;  // tangents of the inputs; an Array without a node means zeros
  const char* call;                 // "jvp"
};
// Tangents of the outputs, with the same convention.
using JvpRule = std::vector<Array> (*)(const JvpArgs&);

void set_jvp_rule(const OpDef&, JvpRule);
JvpRule jvp_rule_of(const OpDef&);  // nullptr: the vjp is transposed instead

struct HasJvpRule {
  HasJvpRule(const OpDef& op, JvpRule rule) { set_jvp_rule(op, rule); }
};

}  // namespace tessera
