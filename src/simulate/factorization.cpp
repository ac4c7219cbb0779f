// Factorizations panel by panel (ops/factor/grid_lu): the owners factor a panel together, it goes along the
// rows of the grid, pivot rows along the columns, and everybody updates while the next panel is on its way.
#include <algorithm>
#include <cmath>

#include "compile/forecast/panel_cost.hpp"
#include "ops/factor/block_cyclic.hpp"
#include "simulate/plan_steps.hpp"

namespace tessera {
namespace {

constexpr std::int64_t most_followed_pivots = 8;

// A matrix whose panels go round a grid of ranks.
struct GridProblem {
  std::vector<int> ids;  // by place in the grid, row by row
  factor::GridShape grid;
  std::int64_t n = 0, block = 1;
  double item = 8, of_a_product = 1;
  GridFactorization kind = {};
  bool is_hpl = false;
};

class GridSteps {
 public:
  GridSteps(StepWriter& writer, GridProblem problem)
      : w_(writer),
        p_(std::move(problem)),
        grid_(p_.grid),
        layout_{{p_.n, p_.block, grid_.rows}, {p_.n, p_.block, grid_.columns}},
        cost_(writer.rates(), p_.kind.has_pivots, p_.item, p_.of_a_product),
        rows_(lines(true)),
        columns_(lines(false)) {}

  void write() {
    const std::int64_t n = layout_.rows.extent, block = layout_.columns.block;
    int on_its_way = -1;
    for (std::int64_t start = 0; start < n; start += block) {
      const std::int64_t width = std::min(block, n - start), after = start + width;
      if (on_its_way < 0) on_its_way = make_panel(start, width);
      w_.finish(on_its_way);
      exchange_rows(start, width);
      on_its_way = -1;
      if (after < n) on_its_way = make_panel(after, std::min(block, n - after));
      w_.compute(1, update_seconds(after, width));
    }
    if (on_its_way >= 0) w_.finish(on_its_way);
  }

 private:
  // The grid's rows or columns as groups of ranks.
  GroupsPtr lines(bool along_rows) const {
    auto groups = std::make_shared<RankGroups>(w_.ranks());
    for (int line = 0; line < (along_rows ? grid_.rows : grid_.columns); ++line) {
      std::vector<int> members;
      for (int k = 0; k < (along_rows ? grid_.columns : grid_.rows); ++k)
        members.push_back(p_.ids[static_cast<std::size_t>(along_rows ? line * grid_.columns + k
                                                                     : k * grid_.columns + line)]);
      groups->add(std::move(members));
    }
    return groups;
  }
  GroupsPtr column(int number) const {
    auto groups = std::make_shared<RankGroups>(w_.ranks());
    groups->add(columns_->members[static_cast<std::size_t>(number)]);
    return groups;
  }

  // Factors a panel in one column of the grid, and begins its broadcast along the rows.
  int make_panel(std::int64_t start, std::int64_t width) {
    const int owner = layout_.columns.owner(start);
    const auto rows = static_cast<double>(layout_.rows.extent - start) / grid_.rows;
    const auto w = static_cast<double>(width);
    w_.compute(cost_.factor_seconds(rows, w), only(owner));
    if (grid_.rows > 1 && p_.kind.has_pivots) {
      // The first columns' searches for a pivot are followed: ranks may be late for the first, and the links
      // busy with rows of the panel before; the panel's others take as long as the last of these.
      const auto search = p_.is_hpl ? doubling_rounds(column(owner), (2 * w + 4) * p_.item)
                                    : w_.all_gather(column(owner), 16 + 2 * w * p_.item);
      const int followed = static_cast<int>(std::min<std::int64_t>(width, most_followed_pivots));
      int mark = -1;
      for (int k = 0; k < followed; ++k) {
        if (k == followed - 1) mark = w_.mark();
        w_.communicate(p_.is_hpl ? "all-reduce" : "all-gather", search);
      }
      w_.repeat(mark, w - followed);
      w_.note("the searches for a panel's pivots: eight are followed, the others take as long as the last");
    }
    const double bytes = rows * w * p_.item;
    return w_.begin("broadcast", p_.is_hpl ? ring_broadcast_rounds(rows_, bytes, owner)
                                           : w_.broadcast(rows_, bytes, owner));
  }

  std::shared_ptr<const std::vector<float>> only(int grid_column) const {
    auto share = std::make_shared<std::vector<float>>(static_cast<std::size_t>(w_.ranks()), 0.0F);
    for (const int rank : columns_->members[static_cast<std::size_t>(grid_column)])
      (*share)[static_cast<std::size_t>(rank)] = 1;
    return share;
  }

  // The pivot rows along the columns of the grid. HPL's way: the panel's grid row sends rows to the others,
  // and what each then has goes round.
  void exchange_rows(std::int64_t start, std::int64_t width) {
    if (grid_.rows == 1) return;
    const std::int64_t n = layout_.columns.extent, moved = p_.kind.moves_left ? n - width : n - start - width;
    const double each = static_cast<double>(width * moved) / grid_.columns * p_.item / grid_.rows;
    if (!p_.is_hpl) return w_.communicate("panels", w_.all_gather(columns_, each));
    w_.communicate("rows", scatter_rounds(columns_, each, layout_.rows.owner(start)));
    w_.communicate("rows", ring_rounds(columns_, each, false));
  }

  // The seconds of each rank's update, of its own rows and columns below and right of the panel.
  std::shared_ptr<const std::vector<float>> update_seconds(std::int64_t after, std::int64_t width) const {
    const double scale =
        p_.kind.flops * p_.of_a_product * 3 / 2;  // an LU has 2/3 n^3, the sum over the panels
    const auto w = static_cast<double>(width);
    auto seconds = std::make_shared<std::vector<float>>(static_cast<std::size_t>(w_.ranks()), 0.0F);
    for (std::size_t r = 0; r < p_.ids.size(); ++r) {
      const int row = layout_.row_of(static_cast<int>(r)), column = layout_.column_of(static_cast<int>(r));
      const auto rows = static_cast<double>(layout_.rows.count(row) - layout_.rows.count_below(row, after));
      const auto columns =
          static_cast<double>(layout_.columns.count(column) - layout_.columns.count_below(column, after));
      (*seconds)[static_cast<std::size_t>(p_.ids[r])] = static_cast<float>(
          scale * 2 * rows * columns * w / w_.rates().flops_per_s + cost_.apply_seconds(rows, columns, w));
    }
    return seconds;
  }

  StepWriter& w_;
  GridProblem p_;
  factor::GridShape grid_;
  factor::BlockCyclic layout_;
  PanelCost cost_;
  GroupsPtr rows_, columns_;
};

}  // namespace

bool write_factorization(StepWriter& writer, const Program& program, const Instruction& i,
                         const CommunicatingCall& call) {
  const GridFactorization* kind = grid_factorization_of(program, i);
  if (kind == nullptr) return false;
  const auto& matrix = program.values[static_cast<std::size_t>(i.inputs[0])];
  const Shape& shape = matrix.type.shape;
  const Mesh mesh = matrix.layout.mesh();
  for (const auto& cost : call.costs)
    if (cost.kind == "all-to-all") {  // to the cyclic layout and back
      MeshAxes axes = cost.axes;
      const double bytes = static_cast<double>(cost.bytes) / static_cast<double>(cost.calls);
      const auto groups = writer.groups_along(mesh, axes);
      for (std::int64_t call = 0; call < cost.calls; ++call)
        writer.communicate("all-to-all", writer.of_kind("all-to-all", groups, bytes));
    }
  GridProblem problem{{}, factor::grid_for(mesh.size()), shape[0]};
  problem.ids.assign(mesh.device_ids().begin(), mesh.device_ids().end());
  problem.block = factor::block_for(shape[0], problem.grid.columns, factor::widest_block(shape[0]));
  problem.item = static_cast<double>(itemsize(matrix.type.dtype));
  problem.of_a_product = float64_products(matrix.type.dtype);
  problem.kind = *kind;
  GridSteps(writer, std::move(problem)).write();
  return true;
}

// The steps of HPL's pages and of the HPL.dat that comes with it (netlib.org/benchmark/hpl): recursive panels
// down to four columns, a pivot's search as a binary exchange, panels by the modified ring, one of them
// ahead, rows that are spread and rolled, float64.
void write_hpl(StepWriter& writer, std::int64_t n, int rows, int columns, std::int64_t block) {
  GridProblem problem{{}, {rows, columns}, n, block};
  for (int rank = 0; rank < rows * columns; ++rank) problem.ids.push_back(rank);
  problem.kind = {"hpl", true, false, 2.0 / 3};
  problem.is_hpl = true;
  GridSteps(writer, std::move(problem)).write();
}

}  // namespace tessera
