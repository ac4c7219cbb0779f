// The seconds of a factorization over a grid of ranks. Every column of the grid has a clock of its own: its
// ranks wait for a panel, exchange rows, make the next panel if it is theirs, and update.
//
//   column 0:  rows 0 | panel 1 | update 0 |         rows 1 | update 1
//   column 1:  rows 0 | update 0 |  waits for panel 1  rows 1 | panel 2 | update 1
#include <algorithm>
#include <bit>
#include <cmath>

#include "compile/forecast/forecast.hpp"
#include "ops/factor/block_cyclic.hpp"

namespace tessera {
namespace {

using forecast::GroupOnHosts;

struct Problem {
  std::int64_t n = 0;
  double item = 8, of_a_product = 1;  // bytes; float64_products
  const GridFactorization& kind;
};

class PanelPipeline {
 public:
  PanelPipeline(const Rates& machine, const Mesh& mesh, const Problem& problem)
      : machine_(machine),
        problem_(problem),
        grid_(factor::grid_for(mesh.size())),
        columns_{problem.n, factor::block_for(problem.n, grid_.columns, factor::widest_block(problem.n)),
                 grid_.columns},
        cost_(machine, problem.kind.has_pivots, problem.item, problem.of_a_product),
        clocks_(static_cast<std::size_t>(grid_.columns), 0),
        arrivals_(clocks_) {
    const Mesh grid = abstract_mesh({grid_.rows, grid_.columns}, {"rows", "columns"});
    down_ = forecast::group_on_hosts(grid, {0}, machine.topology);
    along_ = forecast::group_on_hosts(grid, {1}, machine.topology);
    alone_ = down_;
    alone_.blocks /= down_.sharing, alone_.pairs /= down_.sharing, alone_.sharing = 1;
    for (auto& ranks : alone_.inside_ranks) ranks /= down_.sharing;
  }

  double seconds() {
    make_panel(0, 0);
    for (std::int64_t start = 0; start < problem_.n; start += columns_.block) {
      const std::int64_t after = std::min(start + columns_.block, problem_.n);
      const double exchange = exchange_seconds(start, after);
      wait_for_panel();
      for (auto& clock : clocks_) clock += exchange;
      if (after < problem_.n) {
        auto& owner = clocks_[static_cast<std::size_t>(columns_.owner(after))];
        owner = make_panel(after, owner);
        if (!machine_.topology.overlaps) wait_for_panel();
      }
      update(after, static_cast<double>(after - start));
    }
    return *std::max_element(clocks_.begin(), clocks_.end());
  }

 private:
  // Returns when its owners have made the panel, and notes when the other columns have received it.
  double make_panel(std::int64_t start, double begin_s) {
    const auto width = static_cast<double>(std::min(columns_.block, problem_.n - start));
    const double rows = static_cast<double>(problem_.n - start) / grid_.rows;
    double made = begin_s + cost_.factor_seconds(rows, width);
    if (problem_.kind.has_pivots && grid_.rows > 1)
      made += width * forecast::gather(machine_, alone_, 16 + 2 * width * problem_.item);
    const double sent =
        grid_.columns > 1 ? forecast::broadcast(machine_, along_, rows * width * problem_.item) : 0;
    const int owner = columns_.owner(start), count = grid_.columns;
    for (int c = 0; c < count; ++c)
      arrivals_[static_cast<std::size_t>(c)] = made + sent * part_of_broadcast((c - owner + count) % count);
    return made;
  }

  // Hops of the binomial tree; between hosts its root's link is as late for the nearest as for the farthest.
  double part_of_broadcast(int distance) const {
    if (along_.hosts > 1 || distance == 0) return distance > 0 ? 1 : 0;
    return std::popcount(static_cast<unsigned>(distance)) / std::ceil(std::log2(grid_.columns));
  }

  void wait_for_panel() {
    for (std::size_t c = 0; c < clocks_.size(); ++c) clocks_[c] = std::max(clocks_[c], arrivals_[c]);
  }

  // The pivot rows, along all columns of the grid at once.
  double exchange_seconds(std::int64_t start, std::int64_t after) const {
    if (grid_.rows == 1) return 0;
    const std::int64_t moved = problem_.n - (problem_.kind.moves_left ? after - start : after);
    const auto elements = static_cast<double>((after - start) * moved);
    return forecast::gather(machine_, down_, elements / grid_.columns * problem_.item / grid_.rows);
  }

  void update(std::int64_t after, double width) {
    const double of_an_element = problem_.kind.flops * 3 * problem_.of_a_product;  // an LU has 2/3 n^3
    const double rows = static_cast<double>(problem_.n - after) / grid_.rows;
    for (int c = 0; c < grid_.columns; ++c) {
      const auto left = static_cast<double>(columns_.count(c) - columns_.count_below(c, after));
      clocks_[static_cast<std::size_t>(c)] +=
          of_an_element * rows * left * width / machine_.flops_per_s + cost_.apply_seconds(rows, left, width);
    }
  }

  const Rates& machine_;
  Problem problem_;
  factor::GridShape grid_;
  factor::CyclicDim columns_;
  PanelCost cost_;
  GroupOnHosts down_, along_;
  GroupOnHosts alone_;  // down_ while one column searches for its pivots and the others use no link
  std::vector<double> clocks_, arrivals_;  // by column of the grid; arrivals_: of the newest panel
};

}  // namespace

double CollectiveForecast::factorization_seconds(const Program& program, const Instruction& i,
                                                 const GridFactorization& kind) {
  const auto& matrix = program.values[static_cast<std::size_t>(i.inputs[0])];
  const Mesh mesh = matrix.layout.mesh();
  const Problem problem{matrix.type.shape[0], static_cast<double>(itemsize(matrix.type.dtype)),
                        float64_products(matrix.type.dtype), kind};
  const double flops = kind.flops * std::pow(static_cast<double>(problem.n), 3) * problem.of_a_product;
  const double all = PanelPipeline(machine_, mesh, problem).seconds();
  return std::max(0.0, all - flops / mesh.size() / machine_.flops_per_s);
}

}  // namespace tessera
