#include "ops/factor/block_cyclic.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

namespace tessera::factor {

std::int64_t CyclicDim::count_below(int part, std::int64_t index) const {
  const std::int64_t round = block * parts, rest = index % round;
  return index / round * block + std::clamp<std::int64_t>(rest - block * part, 0, block);
}

std::vector<CyclicRun> runs_in(const CyclicDim& dim, int part, Range box) {
  std::vector<CyclicRun> runs;
  if (box.size() <= 0) return runs;
  const std::int64_t round = dim.block * dim.parts;
  for (std::int64_t start = box.start / round * round + part * dim.block; start < box.stop; start += round) {
    const std::int64_t from = std::max(start, box.start),
                       to = std::min({start + dim.block, box.stop, dim.extent});
    if (from < to) runs.push_back({from - box.start, dim.local(from), to - from});
  }
  if (dim.parts == 1)  // with one part, all blocks are contiguous
    if (!runs.empty())
      return {{runs.front().in_box, runs.front().in_part,
               runs.back().in_box + runs.back().size - runs.front().in_box}};
  return runs;
}

std::int64_t Overlap2d::elements() const {
  const auto total = [](const std::vector<CyclicRun>& runs) {
    return std::accumulate(runs.begin(), runs.end(), std::int64_t{0},
                           [](std::int64_t sum, const CyclicRun& run) { return sum + run.size; });
  };
  return total(rows) * total(columns);
}

Overlap2d overlap(const BlockCyclic& layout, int grid_rank, const Rectangle& box) {
  if (box.is_empty()) return {};
  Overlap2d overlap{runs_in(layout.rows, layout.row_of(grid_rank), box.rows),
                    runs_in(layout.columns, layout.column_of(grid_rank), box.columns)};
  if (overlap.rows.empty() || overlap.columns.empty()) return {};
  return overlap;
}

std::vector<int> servers(std::span<const Rectangle> held, int receiver) {
  const auto key = [&](std::size_t r) {
    return std::array{held[r].rows.start, held[r].rows.stop, held[r].columns.start, held[r].columns.stop};
  };
  std::map<std::array<std::int64_t, 4>, std::vector<int>> holders;
  for (std::size_t r = 0; r < held.size(); ++r)
    if (!held[r].is_empty()) holders[key(r)].push_back(static_cast<int>(r));
  const auto own = static_cast<std::size_t>(receiver);
  std::vector<int> chosen;
  for (std::size_t r = 0; r < held.size(); ++r) {
    if (held[r].is_empty()) continue;
    const auto& all = holders[key(r)];
    if (all[0] == static_cast<int>(r))
      chosen.push_back(held[own] == held[r] ? receiver : all[own % all.size()]);
  }
  return chosen;
}

GridShape grid_for(int ranks) {
  if (ranks <= 4) return {1, ranks};
  int rows = 1;
  for (int r = 1; r * r <= ranks; ++r)
    if (ranks % r == 0) rows = r;
  return {rows, ranks / rows};
}

std::int64_t block_for(std::int64_t extent, int parts, std::int64_t most) {
  constexpr std::int64_t blocks_per_rank = 8, step = 8;
  const std::int64_t wanted = (extent + parts * blocks_per_rank - 1) / (parts * blocks_per_rank);
  return std::clamp<std::int64_t>((wanted + step - 1) / step * step, step, std::max(most, step));
}

}  // namespace tessera::factor
