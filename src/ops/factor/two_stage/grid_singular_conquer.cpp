// Divide and conquer on an upper bidiagonal matrix (conquest.hpp). If a part does not reach the end of the
// matrix, its last row is the one that connects it to the next part; without that row the part has one column
// more than rows.
//
//   3 parts of 3 rows:   x x . . . . . . .
//                        . x x . . . . . .
//                        . . a b . . . . .      <- joins 0 and 1
//                        . . . x x . . . .
//                        . . . . x x . . .
//                        . . . . . a b . .      <- joins 01 and 2
//                        . . . . . . x x .
//                        . . . . . . . x x
//                        . . . . . . . . x
#include <cmath>
#include <limits>

#include "kernels/spectral/singular_merge.hpp"
#include "ops/factor/two_stage/bidiagonal.hpp"
#include "ops/factor/two_stage/conquest.hpp"

namespace tessera::factor {
namespace {

template <class R> struct BidiagonalProblem {
  using Real = R;
  using Merge = kernels::SingularMerge<R>;
  using Side = typename Merge::Side;

  // A part's null vector has the value 0 and comes last.
  bool solve(Range own, bool reaches_end) {
    const std::int64_t size = own.size(), values_of_part = reaches_end ? size : size - 1;
    for (SplitRows<R>* rows : {&u, &v}) {
      rows->vectors.resize(size * size);
      std::fill(rows->vectors.begin(), rows->vectors.end(), R(0));
    }
    const bool converged = kernels::bidiagonal_svd(values_of_part, !reaches_end, diagonal.data() + own.start,
                                                   beside.data() + own.start, values.data() + own.start,
                                                   u.vectors.data(), v.vectors.data(), size);
    if (!reaches_end) values[own.stop - 1] = R(0);
    return converged;
  }
  R at_cut(std::int64_t row, std::int64_t column) const { return v.vectors[row + column * v.count]; }
  std::unique_ptr<Merge> merge(const Join& join, std::vector<R> d, std::vector<R> z) const {
    return std::make_unique<Merge>(std::move(d), std::move(z), join.top(),
                                   typename Merge::Between{diagonal[join.cut - 1], beside[join.cut - 1]},
                                   !join.reaches_end);
  }
  static bool find_root(const Merge& merge, std::int64_t index, typename Merge::Root& root) {
    root = merge.find_root(index);
    return true;
  }
  void multiply(const Merge& merge, const Join& join) {
    multiply_side(merge, join, Side::right, v);
    multiply_side(merge, join, Side::left, u);
  }
  void multiply_side(const Merge& merge, const Join& join, Side side, SplitRows<R>& rows) {
    auto half = columns_in(join, rows);
    if (side == Side::left && rows.first + rows.count == join.cut)  // the row between the halves is mine
      half.filled(join.top() - 1)[rows.count - 1] = R(1);
    half.rotate(merge.rotations(side));
    multiply_rows(
        join, merge, half, [&](const auto& places, auto... which) { merge.vectors(side, places, which...); },
        rows);
  }

  const std::vector<R>&diagonal, &beside;
  std::vector<R>& values;
  SplitRows<R>&u, &v;
};

}  // namespace

template <class R> bool divide_and_conquer_bidiagonal(const Grid& grid, std::vector<R>& diagonal,
                                                      const std::vector<R>& beside, SplitRows<R>& u,
                                                      SplitRows<R>& v) {
  const auto n = static_cast<std::int64_t>(diagonal.size());
  const Range own = rows_of_part(n, grid.all->size(), grid.rank);
  u.first = v.first = own.start, u.count = v.count = own.size();
  if (std::all_of(diagonal.begin(), diagonal.end(), [](R x) { return x == 0; }) &&
      std::all_of(beside.begin(), beside.end(), [](R x) { return x == 0; })) {
    for (SplitRows<R>* rows : {&u, &v}) {
      rows->vectors.resize(own.size() * n);
      std::fill(rows->vectors.begin(), rows->vectors.end(), R(0));
      for (std::int64_t i = 0; i < own.size(); ++i) rows->vectors[i + (own.start + i) * own.size()] = R(1);
    }
    return true;
  }
  // Smaller diagonal elements are raised to this value, because poles need a scale; in a matrix of norm one
  // or more such elements are lost to rounding anyway.
  constexpr R least = std::numeric_limits<R>::epsilon() / 2;
  std::vector<R> raised = diagonal;
  for (R& value : raised)
    if (std::abs(value) < least) value = std::copysign(least, value);
  BidiagonalProblem<R> problem{raised, beside, diagonal, u, v};
  return Conquest<BidiagonalProblem<R>>(grid, problem).run();
}

template bool divide_and_conquer_bidiagonal<float>(const Grid&, std::vector<float>&,
                                                   const std::vector<float>&, SplitRows<float>&,
                                                   SplitRows<float>&);
template bool divide_and_conquer_bidiagonal<double>(const Grid&, std::vector<double>&,
                                                    const std::vector<double>&, SplitRows<double>&,
                                                    SplitRows<double>&);

}  // namespace tessera::factor
