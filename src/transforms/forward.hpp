// Rules of forward mode, for ops whose tangents are not best had by transposing twice: loops, which would
// keep every step's values.
#pragma once
#include <vector>

#include "graph/op.hpp"

namespace tessera {

struct JvpArgs {
  const Node& node;
  std::span<const Array> in;        // the node's inputs
  std::span<const Array> out;       // its outputs
  std::span<const Array> tangents;  // of its inputs; an Array that holds nothing stands for zeros
  const char* call;                 // "jvp"
};
// Tangents of the outputs, likewise.
using JvpRule = std::vector<Array> (*)(const JvpArgs&);

void set_jvp_rule(const OpDef&, JvpRule);
JvpRule jvp_rule_of(const OpDef&);  // nullptr: its vjp, transposed

struct HasJvpRule {
  HasJvpRule(const OpDef& op, JvpRule rule) { set_jvp_rule(op, rule); }
};

}  // namespace tessera
