// Divide and conquer on a tridiagonal matrix (conquest.hpp).
#include <limits>

#include "kernels/spectral/rank_one_merge.hpp"
#include "ops/factor/two_stage/conquest.hpp"

namespace tessera::factor {
namespace {

template <class R> struct TridiagonalProblem {
  using Real = R;
  using Merge = kernels::RankOneMerge<R>;

  // Subtracts from the corners of the blocks the terms that the joins add again.
  void cut(const std::vector<std::int64_t>& rows_of_cuts) {
    for (const std::int64_t row : rows_of_cuts) {
      const R corner = std::abs(beside[row - 1]);
      values[row - 1] -= corner, values[row] -= corner;
    }
  }
  bool solve(Range own, bool /*reaches_end*/) {
    rows.vectors.resize(rows.count * rows.count);
    std::vector<R> e(rows.count);
    for (std::int64_t i = 0; i + 1 < rows.count; ++i) e[i] = beside[own.start + i];
    return kernels::tridiagonal_eigh(rows.count, values.data() + own.start, e.data(), rows.vectors.data());
  }
  R at_cut(std::int64_t row, std::int64_t column) const { return rows.vectors[row + column * rows.count]; }
  std::unique_ptr<Merge> merge(const Join& join, std::vector<R> d, std::vector<R> z) const {
    return std::make_unique<Merge>(std::move(d), std::move(z), join.top(), beside[join.cut - 1]);
  }
  static bool find_root(const Merge& merge, std::int64_t index, typename Merge::Root& root) {
    return merge.find_root(index, root);
  }
  void multiply(const Merge& merge, const Join& join) {
    auto half = columns_in(join, rows);
    half.rotate(merge.rotations());
    multiply_rows(
        join, merge, half, [&](const auto& places, auto... which) { merge.vectors(places, which...); }, rows);
  }

  std::vector<R>&values, &beside;
  SplitRows<R>& rows;
};

}  // namespace

Range rows_of_part(std::int64_t n, int ranks, int rank) {
  constexpr std::int64_t least = 8;  // fewer rows than that are not worth a part
  const std::int64_t parts = std::clamp<std::int64_t>(n / least, 1, ranks);
  if (rank >= parts) return {n, n};
  return {n * rank / parts, n * (rank + 1) / parts};
}

template <class R> bool divide_and_conquer(const Grid& grid, std::vector<R>& diagonal, std::vector<R>& beside,
                                           SplitRows<R>& rows) {
  const Range own = rows_of_part(static_cast<std::int64_t>(diagonal.size()), grid.all->size(), grid.rank);
  rows.first = own.start, rows.count = own.size();
  TridiagonalProblem<R> problem{diagonal, beside, rows};
  Conquest<TridiagonalProblem<R>> conquest(grid, problem);
  problem.cut(conquest.cuts());
  return conquest.run();
}

template bool divide_and_conquer<float>(const Grid&, std::vector<float>&, std::vector<float>&,
                                        SplitRows<float>&);
template bool divide_and_conquer<double>(const Grid&, std::vector<double>&, std::vector<double>&,
                                         SplitRows<double>&);

}  // namespace tessera::factor
