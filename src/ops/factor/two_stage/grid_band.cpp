// The first stage, dense to band, and the application of its reflectors to vectors.
//
//   panel k = Q R below the band, Q = I - V T V^H; on the rows and columns behind it
//     Q^H A Q = A - V Z^H - Z V^H,   Z = X - V M / 2,  X = A V T,  M = T^H V^H X
//   only blocks on and below the diagonal are kept; a block A_ij of a rank's columns gives it terms of two
//   blocks of X, and these are summed over the ranks:
//     X_j += A_ij^H V_i T,   X_i += A_ij V_j T
#include <algorithm>

#include "kernels/move/transpose_tile.hpp"
#include "ops/factor/two_stage/two_stage.hpp"

namespace tessera::factor {

template <class T> std::vector<T> gathered_columns(const Grid& grid, const CyclicDim& columns,
                                                   std::int64_t first, std::int64_t height,
                                                   std::vector<T> own) {
  if (columns.parts == 1) return own;
  std::vector<std::int64_t> counts;
  for (int part = 0; part < columns.parts; ++part)
    counts.push_back((columns.count(part) - columns.count_below(part, first)) * height);
  Gathered<T> gathered;
  gathered.resize(counts);
  std::copy(own.begin(), own.end(), gathered.of(grid.column));
  gathered.exchange(*grid.along_row);
  std::vector<T> ordered(height * (columns.extent - first));
  for (int part = 0; part < columns.parts; ++part) {
    const T* from = gathered.of(part);
    for (std::int64_t c = columns.count_below(part, first); c < columns.count(part); ++c, from += height)
      std::copy_n(from, height, ordered.data() + (columns.global(part, c) - first) * height);
  }
  return ordered;
}

template <class T> void BandReduction<T>::reduce() {
  if (is_reduced(0)) return;
  Reflectors<T> panel, next;
  make(0, panel);
  for (std::int64_t start = 0; !is_reduced(start); start += width()) {
    panel.arrival.wait();
    update(panel, next);
    std::swap(panel, next);
  }
}

template <class T> void BandReduction<T>::make(std::int64_t start, Reflectors<T>& panel) {
  if (a_.layout.columns.owner(start) == grid_.column) {
    const std::int64_t first = start + width(), rows = n() - first, count = std::min(width(), rows);
    T* const below = a_.at(first, a_.layout.columns.local(start));
    auto& t = triangles_.emplace_back(count * count);
    kernels::qr_panel(rows, count, below, a_.ld, t.data(), count, grid_.order);
    if (count < width()) {  // the panel is wider than high
      std::vector<T> v(rows * count);
      kernels::copy_reflectors(rows, count, below, a_.ld, v.data(), rows);
      kernels::reflect(rows, width() - count, count, v.data(), rows, t.data(), count, true,
                       below + count * a_.ld, a_.ld, grid_.order);
    }
  }
  send(start, panel);
}

template <class T> void BandReduction<T>::send(std::int64_t start, Reflectors<T>& panel) {
  const std::int64_t first = start + width(), rows = n() - first;
  panel.resize(first, rows, std::min(width(), rows));
  const int owner = a_.layout.columns.owner(start);
  if (owner == grid_.column) {
    const std::int64_t local = a_.layout.columns.local(start);
    panel.copy(a_.at(first, local), a_.ld, triangles_[local / width()]);
  }
  panel.start_broadcast(grid_, owner);
}

// X^H (width x rows), from every rank's columns.
template <class T> std::vector<T> BandReduction<T>::projected(Reflectors<T>& panel, std::int64_t first) {
  const std::int64_t w = panel.width, rows = panel.rows;
  const auto start_of = [&](std::int64_t block) { return block * width(); };
  const auto size_of = [&](std::int64_t block) { return std::min(width(), rows - start_of(block)); };
  std::vector<kernels::PackedPanel<T>> adjoint((rows + width() - 1) / width());  // V^H by blocks of rows
  for (std::int64_t i = 0; i < std::ssize(adjoint); ++i)
    adjoint[i].pack(w, size_of(i), {panel.v() + start_of(i), rows, 1, true}, grid_.order);
  std::vector<T> sums(w * rows, T(0)), xh(w * rows);  // -V^H A
  for (std::int64_t c = first; c < a_.columns; c += width()) {
    const std::int64_t column = a_.layout.columns.global(grid_.column, c) - panel.first, j = column / width(),
                       count = size_of(j), behind = column + count;
    for (std::int64_t i = j; i < std::ssize(adjoint); ++i)
      adjoint[i].subtract_product(0, w, count, {a_.at(panel.first + start_of(i), c), 1, a_.ld},
                                  sums.data() + column * w, w);
    adjoint[j].subtract_product(0, w, rows - behind, {a_.at(panel.first + behind, c), a_.ld, 1, true},
                                sums.data() + behind * w, w);
  }
  if (grid_.shape.columns > 1)
    counted::all_reduce(*grid_.along_row, ReduceKind::sum, dtype_of<T>(), sums.data(), w * rows);
  kernels::product<T>(w, rows, w, T(-1), {panel.t(), w, 1, true}, {sums.data(), 1, w}, false, xh.data(), w,
                      grid_.order);
  return xh;
}

namespace {
// to (n x m) = from^H (m x n)
template <class T>
void adjoint(std::int64_t m, std::int64_t n, const T* from, std::int64_t ld_from, T* to, std::int64_t ld_to) {
  kernels::transpose_plane(reinterpret_cast<std::byte*>(to), ld_to, reinterpret_cast<const std::byte*>(from),
                           ld_from, m, n, sizeof(T));
  if constexpr (complex_type<T>)
    for (std::int64_t j = 0; j < m; ++j)
      for (std::int64_t i = 0; i < n; ++i) to[i + j * ld_to] = std::conj(to[i + j * ld_to]);
}
// Z^H in place of X^H.
template <class T> void subtract_half(std::int64_t w, std::int64_t rows, const T* v, const T* t,
                                      std::vector<T>& xh, kernels::SumOrder order) {
  std::vector<T> inner(w * w), m(w * w), half(w * w);
  kernels::product<T>(w, w, rows, T(1), {xh.data(), 1, w}, {v, 1, rows}, false, inner.data(), w, order);
  kernels::product<T>(w, w, w, T(1), {inner.data(), 1, w}, {t, 1, w}, false, m.data(), w, order);
  for (std::int64_t j = 0; j < w; ++j)
    for (std::int64_t i = 0; i < w; ++i)
      half[i + j * w] = (m[i + j * w] + conjugate(m[j + i * w])) * T(static_cast<real_of<T>>(0.25));
  kernels::product<T>(w, rows, w, T(-1), {half.data(), 1, w}, {v, rows, 1, true}, true, xh.data(), w, order);
}
}  // namespace

template <class T> void BandReduction<T>::update(Reflectors<T>& panel, Reflectors<T>& next) {
  const std::int64_t w = panel.width, rows = panel.rows;
  std::int64_t first = a_.layout.columns.count_below(grid_.column, panel.first);
  std::vector<T> zh = projected(panel, first);
  subtract_half(w, rows, panel.v(), panel.t(), zh, grid_.order);
  std::vector<T> left(2 * rows * w), right(2 * rows * w);  // [V Z] and [Z^H; V^H]
  std::copy_n(panel.v(), rows * w, left.begin());
  adjoint(w, rows, zh.data(), w, left.data() + rows * w, rows);
  for (std::int64_t i = 0; i < rows; ++i) std::copy_n(zh.data() + i * w, w, right.data() + i * 2 * w);
  adjoint(rows, w, panel.v(), rows, right.data() + w, 2 * w);
  kernels::PackedPanel<T> packed;
  packed.pack(rows, 2 * w, {left.data(), 1, rows}, grid_.order);
  const auto subtract = [&](std::int64_t from) {  // a block of columns, from its diagonal down
    const std::int64_t column = a_.layout.columns.global(grid_.column, from) - panel.first,
                       count = std::min(width(), rows - column);
    packed.subtract_product(column, rows - column, count, {right.data() + column * 2 * w, 1, 2 * w},
                            a_.at(panel.first + column, from), a_.ld);
  };
  if (!is_reduced(panel.first)) {
    if (a_.layout.columns.owner(panel.first) == grid_.column) subtract(first), first += width();
    make(panel.first, next);
  }
  for (; first < a_.columns; first += width()) {
    subtract(first);
    next.arrival.test();
  }
}

template <class T> std::vector<T> BandReduction<T>::band() const {
  const auto& columns = a_.layout.columns;
  const std::int64_t kept = width() + 1;
  std::vector<T> own(kept * a_.columns, T(0)), band(2 * width() * (n() + kernels::columns_beyond), T(0));
  for (std::int64_t c = 0; c < a_.columns; ++c) {
    const std::int64_t j = columns.global(grid_.column, c);
    std::copy_n(a_.at(j, c), std::min(kept, n() - j), own.data() + c * kept);
  }
  const std::vector<T> all = gathered_columns(grid_, columns, 0, kept, std::move(own));
  for (std::int64_t j = 0; j < n(); ++j)
    std::copy_n(all.data() + j * kept, std::min(kept, 2 * width()), band.data() + j * 2 * width());
  return band;
}

template <class T> void BandReduction<T>::apply(GridMatrix<T>& z) {
  std::int64_t panels = 0;
  while (!is_reduced(panels * width())) ++panels;
  reflect_backwards(
      grid_, panels, z, z.columns, [&](std::int64_t p, Reflectors<T>& panel) { send(p * width(), panel); },
      [](const Reflectors<T>&) { return 0; });
}

#define TESSERA_INSTANTIATE(T)                                                                           \
  template std::vector<T> gathered_columns<T>(const Grid&, const CyclicDim&, std::int64_t, std::int64_t, \
                                              std::vector<T>);                                           \
  template class BandReduction<T>;
TESSERA_INSTANTIATE(float)
TESSERA_INSTANTIATE(double) TESSERA_INSTANTIATE(kernels::c32) TESSERA_INSTANTIATE(kernels::c64)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::factor
