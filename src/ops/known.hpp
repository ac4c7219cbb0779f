// Values that every rank has already: those of arrays that were made of host memory. Ops may refuse them when
// they are recorded, as NumPy does; what is computed, split or traced has no values yet.
#pragma once
#include <optional>
#include <utility>

#include "graph/node.hpp"

namespace tessera {

// The smallest and the largest, where all of them are known on every rank; nothing for an empty array, or a
// NaN.
std::optional<std::pair<double, double>> known_range(const Array& x);

}  // namespace tessera
