// The order of work in LU, Cholesky and QR on a grid, right-looking: the next panel is factored and its
// broadcast started before the columns behind it are updated, so that it travels meanwhile.
#pragma once
#include <algorithm>

#include "ops/factor/grid.hpp"

namespace tessera::factor {

// `algorithm` has
//   make(start, width, panel)         factors a panel and starts its broadcast
//   arrived(panel) -> bool            once a panel is on every rank; false ends the factorization
//   update(panel, first, count)       of some of this rank's columns
//   update_rest(panel, first, next)   of this rank's columns from `first` on, while `next` arrives
template <class Panel, class Algorithm>
void factor_by_panels(const Grid& grid, const CyclicDim& columns, std::int64_t steps, Algorithm& algorithm) {
  const auto width_at = [&](std::int64_t start) { return std::min(columns.block, steps - start); };
  Panel current, next;
  if (steps > 0) algorithm.make(0, width_at(0), current);
  for (std::int64_t start = 0; start < steps; start += columns.block) {
    current.arrival.wait();
    if (!algorithm.arrived(current)) return;
    const std::int64_t after = start + width_at(start);
    std::int64_t first = columns.count_below(grid.column, after);
    if (after < steps) {
      const std::int64_t width = width_at(after);
      if (columns.owner(after) == grid.column) {
        const std::int64_t count = columns.count_below(grid.column, after + width) - first;
        algorithm.update(current, first, count);
        first += count;
      }
      algorithm.make(after, width, next);
    }
    algorithm.update_rest(current, first, next);
    std::swap(current, next);
  }
}

}  // namespace tessera::factor
