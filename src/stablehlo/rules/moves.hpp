// Parts, orders and paddings of arrays.
#pragma once
#include <tessera/array.hpp>

#include <cstdint>
#include <vector>

namespace tessera::stablehlo {

// start:stop:step of one dim, the others whole.
Array part_along(const Array& x, int d, std::int64_t start, std::int64_t stop, std::int64_t step = 1);
Array transposed(const Array& x, const std::vector<int>& order);  // x itself for the order it has

// Elements that a dim gets before, after and between its own; negative: that it loses at its ends.
struct Padding {
  std::int64_t low = 0, high = 0, gap = 0;
};
Array padded(Array x, const Array& value, const std::vector<Padding>& dims);

}  // namespace tessera::stablehlo
