// Values that every rank already has: those of arrays made from host memory. Ops may reject them when they
// are recorded, as NumPy does; computed, split or traced arrays have no values yet.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "graph/node.hpp"

namespace tessera {

// The smallest and the largest value if every rank holds all values; nullopt for an empty array or a NaN.
std::optional<std::pair<double, double>> known_range(const Array& x);
// The values of a real array if every rank holds them all.
std::optional<std::vector<double>> known_values(const Array& x);

}  // namespace tessera
