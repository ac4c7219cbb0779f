#include "compile/forecast/panel_cost.hpp"

#include <algorithm>

namespace tessera {

const GridFactorization* grid_factorization_of(const Program& program, const Instruction& i) {
  static constexpr GridFactorization kinds[] = {{"lu_factor", true, true, 2.0 / 3},
                                                {"solve", true, false, 2.0 / 3},
                                                {"cholesky", false, false, 1.0 / 3}};
  const auto* call = i.as<CommunicatingCall>();
  if (i.op == nullptr || call == nullptr) return nullptr;
  const auto& matrix = program.values[static_cast<std::size_t>(i.inputs[0])];
  const Shape& shape = matrix.type.shape;
  if (shape.ndim() != 2 || shape[0] != shape[1] || shape[0] == 0) return nullptr;
  for (const auto& cost : call->costs)
    if (!cost.axes.empty() && devices_along(matrix.layout.mesh(), cost.axes) != matrix.layout.mesh().size())
      return nullptr;
  for (const auto& kind : kinds)
    if (i.op->name == kind.op) return &kind;
  return nullptr;
}

// grid_lu halves a panel down to four columns: these are searched, divided and subtracted from each other one
// by one; above them every half is multiplied into the other.
//
//   |4|4| 8 |  16   |  ...    a pass over a part: its left half is read, its right half read and written
double PanelCost::factor_seconds(double rows, double width) const {
  const double arithmetic = flops(rows * width * width);
  constexpr double copied_out = 2;
  if (!has_pivots_) return arithmetic + passes(2 + copied_out, rows * width);
  constexpr double narrow = 4;
  const double leaf = std::min(narrow, width), leaves = width / leaf;
  // Column c of a leaf is read by the search, read and written by the division, and for each of the columns
  // behind it one is read and another read and written.
  double seconds = leaves * passes(3 + 3 * (leaf - 1) / 2, rows * leaf);
  for (double part = 2 * narrow; part <= width; part *= 2) seconds += width / part * passes(1.5, rows * part);
  return arithmetic + seconds + passes(copied_out, rows * width);
}

double PanelCost::apply_seconds(double rows, double columns, double width) const {
  const double packed = passes(2, rows * width);
  if (!has_pivots_) return packed;
  return packed + passes(4, width * columns) + flops(width * width * columns);
}

}  // namespace tessera
