#include "ops/factor/two_stage/two_stage.hpp"

#include <cmath>

#include "comm/collectives/collectives.hpp"
#include "kernels/spectral/rank_one_merge.hpp"
#include "ops/factor/two_stage/alone.hpp"

namespace tessera::factor {
namespace {

// 72 rows are three strips of the product kernels; with the 24 sweeps of a block (72 + 23 rows) they are
// four.
constexpr std::int64_t widest_band = 72;

// The diagonal of the tridiagonal matrix and the elements beside it, as the first rank's chase leaves them.
template <class T> struct Tridiagonal { std::vector<real_of<T>> diagonal, beside; };
template <class T> Tridiagonal<T> chased(const Grid& grid, const BandReduction<T>& reduction,
                                         ChasedBand<T>& band, bool vectors) {
  const std::int64_t n = band.sweeps.n;
  Tridiagonal<T> result{std::vector<real_of<T>>(n), std::vector<real_of<T>>(n)};
  std::vector<T> values = reduction.band();
  if (grid.rank == 0) {
    if (vectors) {
      band.values.resize(band.sweeps.values_before(band.sweeps.count()));
      band.taus.resize(band.sweeps.taus_before(band.sweeps.count()));
    }
    kernels::chase_band(band.sweeps, values.data(), result.diagonal.data(), result.beside.data(),
                        vectors ? band.values.data() : nullptr, vectors ? band.taus.data() : nullptr);
  }
  return result;
}

template <class R> void broadcast_from_first(const Grid& grid, std::vector<R>& values) {
  if (grid.all->size() > 1)
    counted::broadcast(*grid.all, values.data(), static_cast<std::int64_t>(values.size() * sizeof(R)), 0);
}

}  // namespace

BlockCyclic two_stage_layout(std::int64_t n, int ranks) {
  return {{n, std::max<std::int64_t>(n, 1), 1}, {n, block_for(n, ranks, widest_band), ranks}};
}

template <class T> void by_columns(const Grid& grid, const SplitRows<real_of<T>>& rows, GridMatrix<T>& z) {
  const std::int64_t n = z.layout.columns.extent;
  Tiles tiles;
  for (int rank = 0; rank < grid.all->size(); ++rank) {
    const Range held = rows_of_part(n, grid.all->size(), rank);
    tiles.held.push_back(held.size() > 0 ? Rectangle{held, {0, n}} : Rectangle{});
  }
  tiles.row_step = 1;
  tiles.column_step = rows.count;
  if constexpr (complex_type<T>) {
    GridMatrix<real_of<T>> real(grid, z.layout);
    load(grid, tiles, rows.vectors.data(), z.layout, real.values.data(), real.ld);
    for (std::int64_t j = 0; j < z.columns; ++j) std::copy_n(real.at(0, j), n, z.at(0, j));
  } else {
    load(grid, tiles, rows.vectors.data(), z.layout, z.values.data(), z.ld);
  }
}

template <class T> int load_hermitian(const Grid& grid, const Tiles& tiles, const T* tile, GridMatrix<T>& a) {
  load(grid, tiles, tile, a.layout, a.values.data(), a.ld, Part::lower);
  const CyclicDim& columns = a.layout.columns;
  kernels::Magnitude magnitude;
  for (std::int64_t c = 0; c < a.columns; ++c) {
    const std::int64_t j = columns.global(grid.column, c), block = c / columns.block * columns.block;
    for (std::int64_t i = block; i < c; ++i)  // the upper half of the block on the diagonal
      *a.at(columns.global(grid.column, i), c) = conjugate(*a.at(j, i));
    if constexpr (complex_type<T>) *a.at(j, c) = a.at(j, c)->real();
    magnitude.add(a.at(j, c), a.rows - j);
  }
  combine(grid, {&magnitude, 1});
  const int exponent = magnitude.largest == 0 ? 0 : -std::ilogb(magnitude.largest);
  for (std::int64_t c = 0; c < a.columns && exponent != 0; ++c) {
    const std::int64_t top = columns.global(grid.column, c / columns.block * columns.block);
    kernels::scale(a.at(top, c), a.rows - top, exponent);
  }
  return exponent;
}

template <class T>
bool eigh_in_two_stages(const Grid& grid, GridMatrix<T>& a, real_of<T>* w, GridMatrix<T>* z) {
  using R = real_of<T>;
  const std::int64_t n = a.layout.rows.extent;
  BandReduction<T> reduction(grid, a);
  reduction.reduce();
  ChasedBand<T> band{{n, a.layout.columns.block}};
  auto [diagonal, beside] = chased(grid, reduction, band, z != nullptr);
  if (z == nullptr) {
    bool converged = true;
    if (grid.rank == 0) converged = kernels::tridiagonal_eigenvalues(n, diagonal.data(), beside.data());
    std::copy(diagonal.begin(), diagonal.end(), w);
    return broadcast_values(grid, converged, w, n);
  }
  broadcast_from_first(grid, diagonal), broadcast_from_first(grid, beside);
  SplitRows<R> rows;
  const bool converged = divide_and_conquer(grid, diagonal, beside, rows);
  std::copy(diagonal.begin(), diagonal.end(), w);
  by_columns(grid, rows, *z);
  rows = {};
  apply_sweeps(grid, band, *z);
  band = {};
  reduction.apply(*z);
  return converged;
}

namespace {

struct TridiagonalTraffic {
  ReceivedBytes& traffic;
  const GridRank& me;
  const CyclicDim& columns = me.layout.columns;
  // Counts the bytes that this rank receives in a broadcast (none if it is the owner), and in a gather (all
  // but its own part).
  void sent(int owner, std::int64_t bytes) const { traffic.broadcast.add(owner == me.rank ? 0 : bytes); }
  void gathered(std::int64_t all, std::int64_t own) const { traffic.broadcast.add(all - own); }

  std::int64_t panels() const {
    std::int64_t count = 0;
    while ((count + 1) * columns.block + 1 < columns.extent) ++count;
    return count;
  }
  void panel(std::int64_t start) const {
    const std::int64_t rows = columns.extent - start - columns.block, width = std::min(columns.block, rows);
    sent(columns.owner(start), (rows + width) * width * me.itemsize);
  }
  void reduction() const {
    for (std::int64_t p = 0; p < panels(); ++p) {
      const std::int64_t start = p * columns.block, first = start + columns.block,
                         rows = columns.extent - first;
      panel(start);
      const std::int64_t sums = rows * std::min(columns.block, rows) * me.itemsize;
      traffic.reduced.add(2 * (columns.parts - 1) * sums / columns.parts);
    }
    gathered(columns.extent * (columns.block + 1) * me.itemsize,
             columns.count(me.rank) * (columns.block + 1) * me.itemsize);
  }
  // The messages of divide and conquer have n elements each.
  void conquest(std::int64_t real_itemsize) const {
    const std::int64_t n = columns.extent;
    for (int parts = columns.parts; parts > 1; parts = (parts + 1) / 2) {
      gathered(2 * n * real_itemsize, 0);
      gathered(16 * n, 16 * n / columns.parts);
    }
    sent(0, n * real_itemsize);
  }
  void sweeps() const {
    const kernels::BandSweeps of{columns.extent, columns.block};
    sent(0, (of.values_before(of.count()) + of.taus_before(of.count())) * me.itemsize);
  }
};

}  // namespace

void predict_two_stages(ReceivedBytes& traffic, const GridRank& me, std::int64_t real_itemsize,
                        bool vectors) {
  if (me.layout.columns.parts == 1) return;
  const TridiagonalTraffic count{traffic, me};
  const std::int64_t n = me.layout.columns.extent;
  count.reduction();
  if (!vectors) return predict_values(traffic, me.rank, n * real_itemsize);
  count.sent(0, 2 * n * real_itemsize);
  count.conquest(real_itemsize);
  const Range rows = rows_of_part(n, me.layout.columns.parts, me.rank);
  traffic.redistributed.add((n - rows.size()) * me.layout.columns.count(me.rank) * real_itemsize);
  count.sweeps();
  for (std::int64_t p = 0; p < count.panels(); ++p) count.panel(p * me.layout.columns.block);
}

#define TESSERA_INSTANTIATE(T)                                                            \
  template int load_hermitian<T>(const Grid&, const Tiles&, const T*, GridMatrix<T>&);    \
  template void by_columns<T>(const Grid&, const SplitRows<real_of<T>>&, GridMatrix<T>&); \
  template bool eigh_in_two_stages<T>(const Grid&, GridMatrix<T>&, real_of<T>*, GridMatrix<T>*);
TESSERA_INSTANTIATE(float)
TESSERA_INSTANTIATE(double) TESSERA_INSTANTIATE(kernels::c32) TESSERA_INSTANTIATE(kernels::c64)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::factor
