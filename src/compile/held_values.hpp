// Values of a graph that are not requested, but to which the program holds handles. collect() appends them to
// the roots, so that they are computed in the same run. Ranks may hold different handles (Python frees cycles
// of references whenever its collector runs): ranks must agree on the requested values only, and compute the
// union of the held ones.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "compile/graph.hpp"

namespace tessera {

// Numbers of values of a graph: leaves first, then the outputs of each node. Ascending.
using ValueNumbers = std::vector<std::uint32_t>;

// The key of a graph whose first `asked` roots are requested. Held values are part of its hash, but enter
// `held` instead of the part that must agree on all ranks.
GraphKey key_of(const Graph&, std::size_t asked, std::uint64_t& held);

ValueNumbers held_values(const Graph&, std::size_t asked);
// Replaces the held values.
void hold(Graph&, std::size_t asked, const ValueNumbers&);

}  // namespace tessera
