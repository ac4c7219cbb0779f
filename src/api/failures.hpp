// Evaluations that fail on a part of the ranks (graph/failed_value.hpp): sharing the failures with the other
// ranks, and the values that depend on them.
#pragma once
#include <functional>

#include "api/evaluate.hpp"
#include "graph/failed_value.hpp"

namespace tessera {

// Called after Agreed::failed: tells every rank of `ids` which of the values have failed. Returns the first
// failure.
FailurePtr share_failures(const std::vector<int>& ids, const std::vector<Array>& values);

// The same for a graph: nodes that depend on these leaves fail as well, everything else is computed. Raises.
// `operands`: the graph's leaves first.
[[noreturn]] void go_on_without_failed(const Graph&, const std::vector<Array>& operands,
                                       const std::vector<int>& ids);

// Returns make(). If a part of the ranks raise a MemoryError together, `roots` become failed values there;
// the other ranks, which do not take part, regard them as computed.
std::unique_ptr<Executable> when_refused(const Graph&, const std::vector<Array>& roots,
                                         const std::vector<int>& ids,
                                         const std::function<std::unique_ptr<Executable>()>& make);

// Drops the inputs of evaluated nodes, unless a gradient may ask for them.
void release_inputs(const std::vector<Array>& roots);

}  // namespace tessera
