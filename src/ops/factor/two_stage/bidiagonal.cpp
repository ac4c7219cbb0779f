#include "ops/factor/two_stage/bidiagonal.hpp"

#include <cmath>

#include "comm/collectives/collectives.hpp"
#include "kernels/spectral/singular_merge.hpp"
#include "ops/factor/two_stage/alone.hpp"

namespace tessera::factor {
namespace {

// The chase runs on one rank and takes time in proportion to this width. Two strips of the product kernels'
// rows.
constexpr std::int64_t widest_upper_band = 48;

// B on the first rank, and the reflectors of both sides there.
template <class T> struct Chased {
  std::vector<real_of<T>> diagonal, beside;
  T corner = T(1);  // B's first element is diagonal[0] times this
  ChasedBand<T> left{}, right{};
};
template <class T> Chased<T> chased(const Grid& grid, const UpperBandReduction<T>& reduction,
                                    const kernels::BandSweeps& sweeps, bool vectors) {
  Chased<T> result{std::vector<real_of<T>>(sweeps.n), std::vector<real_of<T>>(sweeps.n)};
  std::vector<T> band = reduction.band();
  const auto side = [&](ChasedBand<T>& of) {
    of.sweeps = sweeps;
    if (!vectors || grid.rank != 0) return kernels::SideReflectors<T>{};
    of.values.resize(std::max<std::int64_t>(sweeps.values_before(sweeps.count()), 1));
    of.taus.resize(std::max<std::int64_t>(sweeps.taus_before(sweeps.count()), 1));
    return kernels::SideReflectors<T>{of.values.data(), of.taus.data()};
  };
  const auto left = side(result.left), right = side(result.right);
  if (grid.rank == 0)
    result.corner = kernels::chase_upper_band(sweeps, band.data(), result.diagonal.data(),
                                              result.beside.data(), left, right);
  return result;
}

// Sends B to every rank.
template <class T> void broadcast_from_first(const Grid& grid, Chased<T>& band) {
  using R = real_of<T>;
  if (grid.all->size() == 1) return;
  std::vector<R> message = band.diagonal;
  message.insert(message.end(), band.beside.begin(), band.beside.end());
  const R* const parts = reinterpret_cast<const R*>(&band.corner);
  message.insert(message.end(), parts, parts + sizeof(T) / sizeof(R));
  counted::broadcast(*grid.all, message.data(), static_cast<std::int64_t>(message.size() * sizeof(R)), 0);
  const auto n = static_cast<std::ptrdiff_t>(band.diagonal.size());
  std::copy_n(message.begin(), n, band.diagonal.begin());
  std::copy_n(message.begin() + n, n, band.beside.begin());
  std::copy(message.begin() + 2 * n, message.end(), reinterpret_cast<R*>(&band.corner));
}

template <class T> void clear_rows_from(GridMatrix<T>& z, std::int64_t first) {
  for (std::int64_t c = 0; c < z.columns; ++c) std::fill(z.at(first, c), z.at(0, c) + z.rows, T(0));
}

}  // namespace

BlockCyclic bidiagonal_layout(std::int64_t m, std::int64_t n, int ranks) {
  return {{m, std::max<std::int64_t>(m, 1), 1}, {n, block_for(n, ranks, widest_upper_band), ranks}};
}

template <class T> bool svd_in_two_stages(const Grid& grid, GridMatrix<T>& a, real_of<T>* s, GridMatrix<T>* u,
                                          GridMatrix<T>* v) {
  using R = real_of<T>;
  const std::int64_t n = a.layout.columns.extent;
  UpperBandReduction<T> reduction(grid, a);
  reduction.reduce();
  Chased<T> band = chased(grid, reduction, {n, a.layout.columns.block}, u != nullptr);
  if (u == nullptr) {
    bool converged = true;
    if (grid.rank == 0) converged = kernels::bidiagonal_values(n, band.diagonal.data(), band.beside.data());
    std::copy(band.diagonal.begin(), band.diagonal.end(), s);
    return broadcast_values(grid, converged, s, n);
  }
  broadcast_from_first(grid, band);
  SplitRows<R> left, right;
  const bool converged = divide_and_conquer_bidiagonal(grid, band.diagonal, band.beside, left, right);
  std::copy(band.diagonal.begin(), band.diagonal.end(), s);
  using Side = typename UpperBandReduction<T>::Side;
  const auto turn_back = [&](Side side, SplitRows<R>& rows, ChasedBand<T>& sweeps, GridMatrix<T>& z) {
    by_columns(grid, rows, z);
    rows = {};
    if constexpr (complex_type<T>)
      if (side == Side::right)
        for (std::int64_t c = 0; c < z.columns; ++c) *z.at(0, c) *= std::conj(band.corner);
    apply_sweeps(grid, sweeps, z);
    sweeps = {};
    clear_rows_from(z, n);
    reduction.apply(side, z);
  };
  turn_back(Side::left, left, band.left, *u);
  turn_back(Side::right, right, band.right, *v);
  return converged;
}

std::int64_t elements_of_chase(const BlockCyclic& layout, bool vectors) {
  const kernels::BandSweeps of{layout.columns.extent, layout.columns.block};
  return (vectors ? 2 * of.values_before(of.count()) : 0) + 4 * of.width * of.n;
}

namespace {

struct BidiagonalTraffic {
  ReceivedBytes& traffic;
  const GridRank& me;
  const CyclicDim& columns = me.layout.columns;
  const std::int64_t m = me.layout.rows.extent, n = columns.extent, width = columns.block;

  void sent(int owner, std::int64_t bytes) const { traffic.broadcast.add(owner == me.rank ? 0 : bytes); }
  // `height` elements of each column from `first` on.
  void gathered(std::int64_t first, std::int64_t height, std::int64_t bytes_of_one) const {
    const std::int64_t own = columns.count(me.rank) - columns.count_below(me.rank, first);
    traffic.broadcast.add((n - first - own) * height * bytes_of_one);
  }
  void left_panel(std::int64_t start) const {
    const std::int64_t w = std::min(width, n - start);
    sent(columns.owner(start), (m - start + w) * w * me.itemsize);
  }
  bool has_right(std::int64_t start) const { return start + width + 1 < n; }
  void right_panel(std::int64_t start) const {
    const std::int64_t count = n - start - width, w = std::min(width, count);
    sent(columns.owner(start + width), (count + w) * w * me.itemsize);
  }
  void reduction() const {
    for (std::int64_t start = 0; start < n; start += width) {
      left_panel(start);
      if (!has_right(start)) continue;
      gathered(start + width, width, me.itemsize);
      right_panel(start);
      const std::int64_t sums = (m - start - width) * std::min(width, n - start - width) * me.itemsize;
      traffic.reduced.add(2 * (columns.parts - 1) * sums / columns.parts);
    }
    gathered(0, width + 1, me.itemsize);
  }
  // The messages of divide and conquer have n elements each.
  void conquest(std::int64_t real_itemsize) const {
    for (int parts = columns.parts; parts > 1; parts = (parts + 1) / 2) {
      traffic.broadcast.add(2 * n * real_itemsize);
      traffic.broadcast.add(16 * n - 16 * n / columns.parts);
    }
    sent(0, n * real_itemsize);
  }
  void side(bool is_left, std::int64_t real_itemsize) const {
    const Range rows = rows_of_part(n, columns.parts, me.rank);
    traffic.redistributed.add((n - rows.size()) * columns.count(me.rank) * real_itemsize);
    const kernels::BandSweeps of{n, width};
    sent(0, (of.values_before(of.count()) + of.taus_before(of.count())) * me.itemsize);
    for (std::int64_t start = 0; start < n; start += width)
      if (is_left)
        left_panel(start);
      else if (has_right(start))
        right_panel(start);
  }
};

}  // namespace

void predict_bidiagonal(ReceivedBytes& traffic, const GridRank& me, std::int64_t real_itemsize,
                        bool vectors) {
  if (me.layout.columns.parts == 1) return;
  const BidiagonalTraffic count{traffic, me};
  count.reduction();
  if (!vectors) return predict_values(traffic, me.rank, count.n * real_itemsize);
  count.sent(0, 2 * count.n * real_itemsize + me.itemsize);
  count.conquest(real_itemsize);
  count.side(true, real_itemsize), count.side(false, real_itemsize);
}

#define TESSERA_INSTANTIATE(T)                                                                 \
  template bool svd_in_two_stages<T>(const Grid&, GridMatrix<T>&, real_of<T>*, GridMatrix<T>*, \
                                     GridMatrix<T>*);
TESSERA_INSTANTIATE(float)
TESSERA_INSTANTIATE(double) TESSERA_INSTANTIATE(kernels::c32) TESSERA_INSTANTIATE(kernels::c64)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::factor
