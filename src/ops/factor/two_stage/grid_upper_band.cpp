// The first stage of a singular value decomposition, dense to upper band, and the application of its
// reflectors.
//
//   panel k = Q R,      Q = I - V T V^H     Q^H A = A - V Z^H,  Z^H = T^H V^H A
//   the panel's rows behind it = L P^H, P = I - W S W^H
//   Q^H A P = A - V Z^H - X W^H,  X = (A - V Z^H) W S
//   a rank computes X's part from its own columns; the parts are added up
#include <algorithm>

#include "ops/factor/two_stage/bidiagonal.hpp"

namespace tessera::factor {

template <class T> void UpperBandReduction<T>::reduce() {
  if (n() == 0) return;
  Reflectors<T> panel, next;
  make_left(0, panel);
  for (std::int64_t start = 0; start < n(); start += width()) {
    panel.arrival.wait();
    if (start + width() < n()) step(panel, next);
    std::swap(panel, next);
  }
}

template <class T> void UpperBandReduction<T>::make_left(std::int64_t start, Reflectors<T>& panel) {
  if (a_.layout.columns.owner(start) == grid_.column) {
    const std::int64_t count = std::min(width(), n() - start);
    auto& t = left_triangles_.emplace_back(count * count);
    kernels::qr_panel(m() - start, count, a_.at(start, a_.layout.columns.local(start)), a_.ld, t.data(),
                      count, grid_.order);
  }
  send_left(start, panel);
}
template <class T> void UpperBandReduction<T>::send_left(std::int64_t start, Reflectors<T>& panel) {
  const int owner = a_.layout.columns.owner(start);
  panel.resize(start, m() - start, std::min(width(), n() - start));
  if (owner == grid_.column) {
    const std::int64_t local = a_.layout.columns.local(start);
    panel.copy(a_.at(start, local), a_.ld, left_triangles_[local / width()]);
  }
  panel.start_broadcast(grid_, owner);
}

// The grid column with the first columns behind the panel gathers the rows and factors them as L Q: the band,
// which takes L, lies there.
template <class T> void UpperBandReduction<T>::make_right(std::int64_t start, Reflectors<T>& right) {
  const std::int64_t first = start + width(), columns = n() - first;
  const int owner = a_.layout.columns.owner(first);
  const std::int64_t mine = columns_from(first), count = a_.columns - mine;
  std::vector<T> own(width() * count);
  for (std::int64_t c = 0; c < count; ++c)
    std::copy_n(a_.at(start, mine + c), width(), own.data() + c * width());
  const std::vector<T> rows = gathered_columns(grid_, a_.layout.columns, first, width(), std::move(own));
  if (owner == grid_.column) {
    const std::int64_t k = std::min(width(), columns);
    std::vector<T> adjoint(columns * width());
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = 0; i < width(); ++i) adjoint[j + i * columns] = conjugate(rows[i + j * width()]);
    auto& kept = right_panels_.emplace_back((columns + k) * k);
    T *const v = kept.data(), *const t = v + columns * k;
    kernels::qr_panel(columns, k, adjoint.data(), columns, t, k, grid_.order);
    kernels::copy_reflectors(columns, k, adjoint.data(), columns, v, columns);
    if (k < width())  // more rows than columns
      kernels::reflect(columns, width() - k, k, v, columns, t, k, true, adjoint.data() + k * columns, columns,
                       grid_.order);
    for (std::int64_t j = 0; j < k; ++j)  // the part of L that is in the band
      for (std::int64_t i = j; i < width(); ++i)
        *a_.at(start + i, a_.layout.columns.local(first + j)) = conjugate(adjoint[j + i * columns]);
  }
  send_right(start, right);
}
template <class T> void UpperBandReduction<T>::send_right(std::int64_t start, Reflectors<T>& right) {
  const std::int64_t first = start + width();
  const int owner = a_.layout.columns.owner(first);
  right.resize(first, n() - first, std::min(width(), n() - first));
  if (owner == grid_.column) {
    // The first block of columns has no panel before it.
    const std::int64_t place = a_.layout.columns.local(first) / width() - (grid_.column == 0 ? 1 : 0);
    right.values = right_panels_[place];
  }
  right.start_broadcast(grid_, owner);
}

template <class T> std::vector<T> UpperBandReduction<T>::reflect_top(Reflectors<T>& left) {
  const std::int64_t w = left.width, first = columns_from(left.first + w), mine = a_.columns - first;
  std::vector<T> sums(w * mine), zh(w * mine);
  if (mine == 0) return zh;
  kernels::PackedPanel<T> adjoint;
  adjoint.pack(w, left.rows, {left.v(), left.rows, 1, true}, grid_.order);
  adjoint.product(mine, {a_.at(left.first, first), 1, a_.ld}, sums.data(), w);
  kernels::product<T>(w, mine, w, T(1), {left.t(), w, 1, true}, {sums.data(), 1, w}, false, zh.data(), w,
                      grid_.order);
  kernels::product<T>(w, mine, w, T(-1), {left.v(), 1, left.rows}, {zh.data(), 1, w}, true,
                      a_.at(left.first, first), a_.ld, grid_.order);
  return zh;
}

namespace {
// The rows of v (rows x width, from column `first` of the matrix on) that belong to a rank's columns.
template <class T> std::vector<T> rows_of_my_columns(const Grid& grid, const CyclicDim& columns,
                                                     std::int64_t first, std::int64_t width, const T* v) {
  const std::int64_t skipped = columns.count_below(grid.column, first),
                     mine = columns.count(grid.column) - skipped, rows = columns.extent - first;
  std::vector<T> chosen(mine * width);
  for (std::int64_t c = 0; c < mine; ++c) {
    const std::int64_t row = columns.global(grid.column, skipped + c) - first;
    for (std::int64_t j = 0; j < width; ++j) chosen[c + j * mine] = v[row + j * rows];
  }
  return chosen;
}
}  // namespace

template <class T> void UpperBandReduction<T>::project(Reflectors<T>& left, const std::vector<T>& zh,
                                                       Reflectors<T>& right, T* to) {
  const std::int64_t behind = right.first, rows = m() - behind, k = right.width, w = left.width,
                     first = columns_from(behind), mine = a_.columns - first;
  std::vector<T> xh(k * rows, T(0));  // W^H (A - V Z^H)^H
  if (mine > 0) {
    const auto own = rows_of_my_columns(grid_, a_.layout.columns, behind, k, right.v());
    kernels::PackedPanel<T> adjoint;
    adjoint.pack(k, mine, {own.data(), mine, 1, true}, grid_.order);
    adjoint.product(rows, {a_.at(behind, first), a_.ld, 1, true}, xh.data(), k);
    std::vector<T> inner(k * w);  // W^H Z
    kernels::product<T>(k, w, mine, T(1), {own.data(), mine, 1, true}, {zh.data(), w, 1, true}, false,
                        inner.data(), k, grid_.order);
    kernels::product<T>(k, rows, w, T(-1), {inner.data(), 1, k}, {left.v() + w, left.rows, 1, true}, true,
                        xh.data(), k, grid_.order);
  }
  if (grid_.shape.columns > 1)
    counted::all_reduce(*grid_.along_row, ReduceKind::sum, dtype_of<T>(), xh.data(), k * rows);
  kernels::product<T>(rows, k, k, T(1), {xh.data(), k, 1, true}, {right.t(), 1, k}, false, to, rows,
                      grid_.order);
}

template <class T> void UpperBandReduction<T>::step(Reflectors<T>& left, Reflectors<T>& next) {
  const std::int64_t w = left.width, behind = left.first + w, rows = m() - behind;
  const std::vector<T> zh = reflect_top(left);
  Reflectors<T> right;
  if (behind + 1 < n()) {  // else the rows are a band already
    make_right(left.first, right);
    right.arrival.wait();
  }
  const std::int64_t depth = w + right.width;
  std::vector<T> outer(rows * depth);  // [V X]
  for (std::int64_t j = 0; j < w; ++j)
    std::copy_n(left.v() + w + j * left.rows, rows, outer.data() + j * rows);
  if (right.width > 0) project(left, zh, right, outer.data() + w * rows);
  kernels::PackedPanel<T> packed;
  packed.pack(rows, depth, {outer.data(), 1, rows}, grid_.order);
  std::int64_t first = columns_from(behind);
  const std::int64_t start = first;
  std::vector<T> inner;  // [Z^H; W^H] of some columns
  const auto subtract = [&](std::int64_t from, std::int64_t count) {
    if (count <= 0) return;
    inner.resize(depth * count);
    for (std::int64_t c = 0; c < count; ++c) {
      const std::int64_t column = a_.layout.columns.global(grid_.column, from + c) - behind;
      std::copy_n(zh.data() + (from - start + c) * w, w, inner.data() + c * depth);
      for (std::int64_t j = 0; j < right.width; ++j)
        inner[c * depth + w + j] = conjugate(right.v()[column + j * right.rows]);
    }
    packed.subtract_product(0, rows, count, {inner.data(), 1, depth}, a_.at(behind, from), a_.ld);
  };
  if (a_.layout.columns.owner(behind) == grid_.column) {
    const std::int64_t own = columns_from(behind + width()) - first;
    subtract(first, own);
    first += own;
  }
  make_left(behind, next);
  const std::int64_t chunk = columns_at_once<T>(rows);
  for (; first < a_.columns; first += chunk) {
    subtract(first, std::min(chunk, a_.columns - first));
    next.arrival.test();
  }
}

template <class T> std::vector<T> UpperBandReduction<T>::band() const {
  const std::int64_t kept = width() + 1, height = 3 * width() - 1;
  std::vector<T> own(kept * a_.columns, T(0));  // the diagonal last
  for (std::int64_t c = 0; c < a_.columns; ++c) {
    const std::int64_t j = a_.layout.columns.global(grid_.column, c), count = std::min(kept, j + 1);
    std::copy_n(a_.at(j + 1 - count, c), count, own.data() + (c + 1) * kept - count);
  }
  const std::vector<T> all = gathered_columns(grid_, a_.layout.columns, 0, kept, std::move(own));
  std::vector<T> band(height * n() + kernels::looked_at_beyond<T>(height), T(0));
  for (std::int64_t j = 0; j < n(); ++j)
    std::copy_n(all.data() + j * kept, kept, band.data() + j * height + width() - 1);
  return band;
}

template <class T> void UpperBandReduction<T>::apply(Side side, GridMatrix<T>& z) {
  const bool is_left = side == Side::left;
  std::int64_t panels = 0;  // those on the right start behind the first block of columns
  while (panels * width() + (is_left ? 0 : width() + 1) < n()) ++panels;
  reflect_backwards(
      grid_, panels, z, z.columns,
      [&](std::int64_t p, Reflectors<T>& panel) {
        is_left ? send_left(p * width(), panel) : send_right(p * width(), panel);
      },
      [](const Reflectors<T>&) { return 0; });
}

#define TESSERA_INSTANTIATE(T) template class UpperBandReduction<T>;
TESSERA_INSTANTIATE(float)
TESSERA_INSTANTIATE(double) TESSERA_INSTANTIATE(kernels::c32) TESSERA_INSTANTIATE(kernels::c64)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::factor
