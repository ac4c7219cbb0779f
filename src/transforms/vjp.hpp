// The recorded part of a computation between arguments and results, and its backward pass.
#pragma once
#include <map>
#include <utility>
#include <vector>

#include "graph/op.hpp"

namespace tessera::detail {

// Holds the nodes between `arguments` and `results` with their inputs, so that it outlives evaluation.
// Immutable; supports any number of backward passes.
class Tape {
 public:
  // Arguments are aliases (make_alias). `others` depend on the arguments too but have no cotangents. Resets
  // the nodes to ordinary ones: unless an outer transformation watches them, evaluation may release their
  // inputs.
  //
  // known: values that rules read in place of a node's outputs. What depends on these is recorded anew.
  using Values = std::map<std::pair<const Node*, int>, Array>;  // by node and output
  Tape(std::vector<Array> arguments, const std::vector<Array>& results, const std::vector<Array>& others,
       const char* call, Values known = {});

  // One cotangent per result (an Array without a node: zeros) -> one per argument (likewise).
  std::vector<Array> pull_back(const std::vector<Array>& cotangents) const;
  // One tangent per argument (likewise) -> one per result.
  std::vector<Array> push_forward(const std::vector<Array>& tangents) const;

 private:
  struct Entry {
    NodePtr node;
    std::vector<Array> inputs, outputs;  // inputs and outputs as rules see them
    // Per input: the entry that makes it, or -1 if it does not depend on the arguments; which of that entry's
    // outputs it is.
    std::vector<int> producer, output;
  };
  struct EntryOutput {
    int entry = -1, output = 0;
  };
  std::vector<Array> vjp_of(const Entry&, const std::vector<Array>& cotangents) const;
  std::vector<std::vector<bool>> needed_outputs() const;
  std::vector<Array> jvp_of(const Entry&, const std::vector<bool>& needed,
                            const std::vector<Array>& tangents) const;

  std::vector<Entry> entries_;  // in recording order
  std::vector<EntryOutput> arguments_, results_;
  const char* call_;
};

// Nodes below `from` that may depend on arguments, in recording order: those recorded before the first
// argument cannot.
std::vector<NodePtr> recorded_since(std::uint64_t first_serial, const std::vector<Array>& from);

// A user's cotangent or tangent for `like`: its shape and dtype are checked, a weakly typed number is
// converted.
Array fitted(const Array& given, const Array& like, const char* what);
// Zeros of the operand's type and sharding.
Array zeros_for(const Array& operand);

}  // namespace tessera::detail
