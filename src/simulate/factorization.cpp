// Factorizations panel by panel (ops/factor/grid_lu): the owners factor a panel together, it goes along the
// rows of the grid, pivot rows along the columns, and everybody updates while the next panel is on its way.
#include <algorithm>
#include <cmath>

#include "compile/forecast.hpp"
#include "ops/factor/block_cyclic.hpp"
#include "simulate/plan_steps.hpp"

namespace tessera {
namespace {

constexpr std::int64_t most_followed_pivots = 8;

class GridSteps {
 public:
  GridSteps(StepWriter& writer, const Mesh& mesh, std::int64_t n, double item, double flops,
            const GridFactorization& kind)
      : w_(writer),
        grid_(factor::grid_for(mesh.size())),
        layout_{{n, 1, grid_.rows}, {n, 1, grid_.columns}},
        item_(item),
        flops_(flops),
        has_pivots_(kind.has_pivots) {
    const std::int64_t block = factor::block_for(n, grid_.columns, factor::widest_block(n));
    layout_.rows.block = layout_.columns.block = block;
    for (const int id : mesh.device_ids()) ids_.push_back(id);
    rows_ = lines(true), columns_ = lines(false);
  }

  void write() {
    const std::int64_t n = layout_.rows.extent, block = layout_.columns.block;
    int on_its_way = -1;
    for (std::int64_t start = 0; start < n; start += block) {
      const std::int64_t width = std::min(block, n - start), after = start + width;
      if (on_its_way < 0) on_its_way = make_panel(start, width);
      w_.finish(on_its_way);
      exchange_rows(width);
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
        members.push_back(
            ids_[static_cast<std::size_t>(along_rows ? line * grid_.columns + k : k * grid_.columns + line)]);
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
    w_.compute(rows * w * w / w_.rates().flops_per_s, only(owner));
    if (grid_.rows > 1 && has_pivots_) {
      // The first columns' searches for a pivot are followed: ranks may be late for the first, and the links
      // busy with rows of the panel before; the panel's others take as long as the last of these.
      const auto search = w_.all_gather(column(owner), 16 + 2 * w * item_);
      const int followed = static_cast<int>(std::min<std::int64_t>(width, most_followed_pivots));
      int mark = -1;
      for (int k = 0; k < followed; ++k) {
        if (k == followed - 1) mark = w_.mark();
        w_.communicate("all-gather", search);
      }
      w_.repeat(mark, w - followed);
      w_.note("the searches for a panel's pivots: eight are followed, the others take as long as the last");
    }
    return w_.begin("broadcast", w_.broadcast(rows_, rows * w * item_, owner));
  }

  std::shared_ptr<const std::vector<float>> only(int grid_column) const {
    auto share = std::make_shared<std::vector<float>>(static_cast<std::size_t>(w_.ranks()), 0.0F);
    for (const int rank : columns_->members[static_cast<std::size_t>(grid_column)])
      (*share)[static_cast<std::size_t>(rank)] = 1;
    return share;
  }

  // The pivot rows of all other columns, along the columns of the grid.
  void exchange_rows(std::int64_t width) {
    if (grid_.rows == 1) return;
    const double columns = static_cast<double>(layout_.columns.extent - width) / grid_.columns;
    const double each = static_cast<double>(width) * columns * item_ / grid_.rows;
    w_.communicate("panels", w_.all_gather(columns_, each));
  }

  // The seconds of each rank's update, of its own rows and columns below and right of the panel.
  std::shared_ptr<const std::vector<float>> update_seconds(std::int64_t after, std::int64_t width) const {
    const auto n = static_cast<double>(layout_.rows.extent);
    const double scale = flops_ * 3 / (2 * n * n * n);  // an LU has 2/3 n^3, the sum over the panels
    auto seconds = std::make_shared<std::vector<float>>(static_cast<std::size_t>(w_.ranks()), 0.0F);
    for (std::size_t r = 0; r < ids_.size(); ++r) {
      const int row = layout_.row_of(static_cast<int>(r)), column = layout_.column_of(static_cast<int>(r));
      const auto rows = static_cast<double>(layout_.rows.count(row) - layout_.rows.count_below(row, after));
      const auto columns =
          static_cast<double>(layout_.columns.count(column) - layout_.columns.count_below(column, after));
      (*seconds)[static_cast<std::size_t>(ids_[r])] = static_cast<float>(
          scale * 2 * rows * columns * static_cast<double>(width) / w_.rates().flops_per_s);
    }
    return seconds;
  }

  StepWriter& w_;
  factor::GridShape grid_;
  factor::BlockCyclic layout_;
  double item_, flops_;
  bool has_pivots_;
  std::vector<int> ids_;
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
  const auto n = static_cast<double>(shape[0]);
  const double of_a_product = is_complex(matrix.type.dtype) ? 4 : 1;
  GridSteps(writer, mesh, shape[0], static_cast<double>(itemsize(matrix.type.dtype)),
            kind->flops * n * n * n * of_a_product, *kind)
      .write();
  return true;
}

}  // namespace tessera
