// Values that every rank already has: those of arrays made from host memory. Ops may reject them when they
// are recorded, as NumPy does; computed, split or traced arrays have no values yet.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/node.hpp"

namespace tessera {

// The smallest and the largest value if every rank holds all values; nullopt for an empty array or a NaN.
std::optional<std::pair<double, double>> known_range(const Array& x);
// IndexError if integers of known values go beyond `allowed`. `why` says what allows no others, `cure` what
// to write instead.
void check_known_indices(const Array& indices, Range allowed, const std::string& why,
                         const std::string& cure);
// The values of a real array if every rank holds them all.
std::optional<std::vector<double>> known_values(const Array& x);

}  // namespace tessera
