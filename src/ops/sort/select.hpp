// Elements of sorted lines at a few positions.
#pragma once
#include <cstdint>
#include <vector>

#include "graph/op.hpp"

namespace tessera {

struct SelectParams {
  std::vector<std::int64_t> positions;
  template <class V> void fields(V&& visit) const { visit("positions", positions); }
};

// (lines..., positions): the elements that a sort would put at these positions of the last dim; NaN last, all
// NaN alike. float32 and float64. Nothing is sorted: a rank reads its lines about twice, and ranks that share
// a split line add up counts.
Array elements_of_sorted(const Array& x, std::vector<std::int64_t> positions);

}  // namespace tessera
