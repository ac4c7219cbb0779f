// Evaluations that fail on a part of the ranks (graph/failed_value.hpp): what the ranks that know tell the
// others, and what becomes of the values that depend on it.
#pragma once
#include <functional>

#include "api/evaluate.hpp"
#include "graph/failed_value.hpp"

namespace tessera {

// After Agreed::failed: every rank of `ids` learns which of the values have failed. The first of them.
FailurePtr share_failures(const std::vector<int>& ids, const std::vector<Array>& values);

// The same for a graph: what depends on these leaves has failed as well, everything else is computed. Raises.
// `operands`: its leaves first.
[[noreturn]] void go_on_without_failed(const Graph&, const std::vector<Array>& operands,
                                       const std::vector<int>& ids);

// The result of make(). A MemoryError that part of the ranks raise together makes `roots` failed values: the
// others, who pass by, take them for computed.
std::unique_ptr<Executable> when_refused(const Graph&, const std::vector<Array>& roots,
                                         const std::vector<int>& ids,
                                         const std::function<std::unique_ptr<Executable>()>& make);

// Nodes that have values need no operands, unless a gradient may ask for them.
void release_inputs(const std::vector<Array>& roots);

}  // namespace tessera
