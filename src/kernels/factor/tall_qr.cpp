#include "kernels/factor/tall_qr.hpp"

#include <algorithm>
#include <cmath>
#include <complex>

#include "kernels/factor/lapack_calls.hpp"
#include "kernels/parallel.hpp"

namespace tessera::kernels {
namespace {

constexpr std::int64_t chunk_bytes = 1 << 19, widest = 128;

// Chunks of this many rows; the last one has the rest besides.
std::int64_t rows_of_chunk(std::int64_t n, std::size_t itemsize) {
  constexpr std::int64_t unit = 64;
  const auto fitting = chunk_bytes / (n * static_cast<std::int64_t>(itemsize));
  return std::max((std::max(fitting, 4 * n) + unit - 1) / unit * unit, unit);
}

template <class T> void copy_columns(std::int64_t rows, std::int64_t n, const T* from, std::int64_t ld_from,
                                     T* to, std::int64_t ld_to) {
  for (std::int64_t j = 0; j < n; ++j) std::copy_n(from + j * ld_from, rows, to + j * ld_to);
}
// R of a factored matrix, to rows of a stack.
template <class T>
void copy_triangle(std::int64_t n, const T* from, std::int64_t ld_from, T* to, std::int64_t ld_to) {
  for (std::int64_t j = 0; j < n; ++j) {
    std::copy_n(from + j * ld_from, j + 1, to + j * ld_to);
    std::fill(to + j * ld_to + j + 1, to + j * ld_to + n, T(0));
  }
}

template <class T> class Chunks {
 public:
  Chunks(std::int64_t m, std::int64_t n, T* a, std::int64_t ld)
      : m_(m),
        n_(n),
        ld_(ld),
        a_(a),
        rows_(rows_of_chunk(n, sizeof(T))),
        count_(std::max(m / rows_, std::int64_t{1})) {}

  void factor(T* r, bool vectors) {
    if (count_ == 1) return factor_one(m_, a_, ld_, r, n_, vectors);
    std::vector<T> stack(static_cast<std::size_t>(count_ * n_ * n_));
    const std::int64_t stacked = count_ * n_;
    share(count_, 1, [&](std::int64_t begin, std::int64_t end) {
      std::vector<T> own(static_cast<std::size_t>(size_of(count_ - 1) * n_));
      for (std::int64_t c = begin; c < end; ++c) {
        const std::int64_t rows = size_of(c);
        copy_columns(rows, n_, chunk(c), ld_, own.data(), rows);
        factor_one(rows, own.data(), rows, stack.data() + c * n_, stacked, vectors);
        if (vectors) copy_columns(rows, n_, own.data(), rows, chunk(c), ld_);
      }
    });
    Chunks<T>(stacked, n_, stack.data(), stacked).factor(r, vectors);
    if (!vectors) return;
    share(count_, 1, [&](std::int64_t begin, std::int64_t end) {
      std::vector<T> own(static_cast<std::size_t>(size_of(count_ - 1) * n_));
      for (std::int64_t c = begin; c < end; ++c) {
        const std::int64_t rows = size_of(c);
        copy_columns(rows, n_, chunk(c), ld_, own.data(), rows);
        const int n = static_cast<int>(n_), own_rows = static_cast<int>(rows);
        lapack::gemm<T>('N', 'N', own_rows, n, n, T(1), own.data(), own_rows, stack.data() + c * n_,
                        lapack_int(stacked, "a number of rows"), T(0), chunk(c),
                        lapack_int(ld_, "a number of rows"));
      }
    });
  }

 private:
  std::int64_t size_of(std::int64_t c) const { return c + 1 < count_ ? rows_ : m_ - c * rows_; }
  T* chunk(std::int64_t c) const { return a_ + c * rows_; }

  // x becomes Q if `vectors`; its triangle goes to r.
  void factor_one(std::int64_t rows, T* x, std::int64_t ld, T* r, std::int64_t ld_r, bool vectors) {
    constexpr std::int64_t work_columns = 64;
    const int m = lapack_int(rows, "a number of rows"), n = static_cast<int>(n_),
              step = lapack_int(ld, "a number of rows");
    std::vector<T> tau(static_cast<std::size_t>(n_)), work(static_cast<std::size_t>(work_columns * n_));
    lapack::geqrf(m, n, x, step, tau.data(), work.data(), static_cast<int>(work.size()));
    copy_triangle(n_, x, ld, r, ld_r);
    if (vectors) lapack::orgqr(m, n, n, x, step, tau.data(), work.data(), static_cast<int>(work.size()));
  }

  std::int64_t m_, n_, ld_;
  T* a_;
  std::int64_t rows_, count_;
};

}  // namespace

bool goes_by_chunks(std::int64_t m, std::int64_t n, std::size_t itemsize) {
  return n > 0 && n <= widest && m >= 4 * rows_of_chunk(n, itemsize);
}

std::int64_t chunked_qr_workspace(std::int64_t m, std::int64_t n, std::size_t itemsize) {
  if (!goes_by_chunks(m, n, itemsize)) return 0;
  const std::int64_t rows = rows_of_chunk(n, itemsize);
  std::int64_t stacks = 0;
  for (std::int64_t left = m; left / rows > 1; left = left / rows * n) stacks += left / rows * n * n;
  const std::int64_t count = m / rows, largest = m - (count - 1) * rows;
  return stacks + std::min<std::int64_t>(threads(), count) * largest * n;
}

template <class T>
void chunked_qr(std::int64_t m, std::int64_t n, T* a, std::int64_t ld, T* r, bool vectors) {
  Chunks<T>(m, n, a, ld).factor(r, vectors);
}

template <class T> std::vector<T> householder_signs(std::vector<T> top, std::int64_t n) {
  std::vector<T> signs(static_cast<std::size_t>(n));
  const auto at = [&](std::int64_t i, std::int64_t j) -> T& {
    return top[static_cast<std::size_t>(i + j * n)];
  };
  for (std::int64_t i = 0; i < n; ++i) {
    const T sign = std::signbit(std::real(at(i, i))) ? T(1) : T(-1);
    signs[static_cast<std::size_t>(i)] = sign;
    at(i, i) -= sign;
    for (std::int64_t r = i + 1; r < n; ++r) at(r, i) /= at(i, i);
    for (std::int64_t j = i + 1; j < n; ++j)
      for (std::int64_t r = i + 1; r < n; ++r) at(r, j) -= at(r, i) * at(i, j);
  }
  return signs;
}

template <class T> void with_householder_signs(std::int64_t m, std::int64_t n, T* q, std::int64_t ld, T* r) {
  std::vector<T> top(static_cast<std::size_t>(n * n));
  copy_columns(n, n, q, ld, top.data(), n);
  const auto signs = householder_signs(std::move(top), n);
  for (std::int64_t i = 0; i < n; ++i) {
    if (signs[static_cast<std::size_t>(i)] == T(1)) continue;
    for (std::int64_t k = 0; k < m; ++k) q[k + i * ld] = -q[k + i * ld];
    for (std::int64_t j = i; j < n; ++j) r[i + j * n] = -r[i + j * n];
  }
}

#define TESSERA_INSTANTIATE(T)                                                         \
  template void chunked_qr<T>(std::int64_t, std::int64_t, T*, std::int64_t, T*, bool); \
  template std::vector<T> householder_signs<T>(std::vector<T>, std::int64_t);          \
  template void with_householder_signs<T>(std::int64_t, std::int64_t, T*, std::int64_t, T*);
TESSERA_INSTANTIATE(float) TESSERA_INSTANTIATE(double) TESSERA_INSTANTIATE(c32) TESSERA_INSTANTIATE(c64)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::kernels
