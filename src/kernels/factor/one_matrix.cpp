#include "kernels/factor/one_matrix.hpp"

#include <algorithm>
#include <vector>

#include "kernels/dense/panel_product.hpp"
#include "kernels/factor/lapack_calls.hpp"
#include "kernels/factor/panel_factor.hpp"
#include "kernels/parallel.hpp"

namespace tessera::kernels {
namespace {

// c -= p p^T in the lower triangle of c (n x n), by groups of columns of nearly equal length. Threads share
// each group.
template <class T> void subtract_square(std::int64_t n, std::int64_t depth, const T* p, T* c, std::int64_t ld,
                                        PackedPanel<T>& packed) {
  constexpr std::int64_t group = 256;
  packed.pack(n, depth, {p, 1, ld});
  for (std::int64_t j = 0; j < n; j += group)
    packed.subtract_product(j, n - j, std::min(group, n - j), {p + j, ld, 1}, c + j + j * ld, ld, 0);
}

// The panels of reflectors of one matrix, from the left.
template <class T> class Panels {
 public:
  Panels(std::int64_t m, std::int64_t n, T* a, std::int64_t ld)
      : m_(m), n_(n), ld_(ld), steps_(std::min(m, n)), a_(a) {
    triangles_.resize((steps_ + width - 1) / width);
  }
  void factor() {
    for (std::int64_t start = 0; start < steps_; start += width) {
      const std::int64_t w = width_at(start);
      auto& t = triangle(start);
      t.resize(w * w);
      qr_panel(m_ - start, w, at(start, start), ld_, t.data(), w);
      apply(start, true, n_ - start - w, at(start, start + w));
    }
  }
  // Applies the panels from the last to the first, each to the columns of the identity that it can change.
  void make_q(std::int64_t columns, T* q) {
    for (std::int64_t j = 0; j < columns; ++j) {
      std::fill(q + j * ld_, q + j * ld_ + m_, T(0));
      q[j + j * ld_] = T(1);
    }
    for (std::int64_t start = (steps_ - 1) / width * width; start >= 0; start -= width)
      apply(start, false, columns - start, q + start + start * ld_);
  }

 private:
  static constexpr std::int64_t width = 64;
  std::int64_t width_at(std::int64_t start) const { return std::min(width, steps_ - start); }
  std::vector<T>& triangle(std::int64_t start) { return triangles_[start / width]; }
  T* at(std::int64_t i, std::int64_t j) { return a_ + i + j * ld_; }

  void apply(std::int64_t start, bool adjoint, std::int64_t columns, T* c) {
    if (columns <= 0) return;
    const std::int64_t rows = m_ - start, w = width_at(start);
    reflectors_.resize(rows * w);
    copy_reflectors(rows, w, at(start, start), ld_, reflectors_.data(), rows);
    packed_.pack(rows, w, reflectors_.data(), rows);
    packed_.reflect(columns, triangle(start).data(), w, adjoint, c, ld_);
  }

  std::int64_t m_, n_, ld_, steps_;
  T* a_;
  std::vector<std::vector<T>> triangles_;
  std::vector<T> reflectors_;
  PackedReflectors<T> packed_;
};

}  // namespace

template <class T> std::int64_t cholesky_in_place(std::int64_t n, T* a, std::int64_t ld) {
  constexpr std::int64_t width = 128, rows_of_a_thread = 192;  // multiples of every kernel's tile
  PackedPanel<T> packed;
  for (std::int64_t start = 0; start < n; start += width) {
    const std::int64_t w = std::min(width, n - start), rest = n - start - w;
    T *const corner = a + start + start * ld, *const below = corner + w;
    const int info = lapack::potrf('L', static_cast<int>(w), corner, static_cast<int>(ld));
    if (info > 0) return start + info - 1;
    if (rest == 0) break;
    share(rest, rows_of_a_thread, rows_of_a_thread, [&](std::int64_t begin, std::int64_t end) {
      solve_adjoint_right(end - begin, w, corner, ld, below + begin, ld);
    });
    subtract_square(rest, w, below, below + w * ld, ld, packed);
  }
  return -1;
}

template <class T>
void qr_in_place(std::int64_t m, std::int64_t n, T* a, std::int64_t ld, std::int64_t q_columns, T* q) {
  Panels<T> panels(m, n, a, ld);
  panels.factor();
  if (q != nullptr) panels.make_q(q_columns, q);
}

#define TESSERA_INSTANTIATE(T)                                                \
  template std::int64_t cholesky_in_place<T>(std::int64_t, T*, std::int64_t); \
  template void qr_in_place<T>(std::int64_t, std::int64_t, T*, std::int64_t, std::int64_t, T*);
TESSERA_INSTANTIATE(float) TESSERA_INSTANTIATE(double)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::kernels
