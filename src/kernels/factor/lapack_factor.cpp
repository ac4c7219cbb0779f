#include "kernels/factor/lapack.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "kernels/factor/lapack_calls.hpp"
#include "kernels/factor/lapack_workspace.hpp"
#include "kernels/factor/magnitude.hpp"
#include "kernels/factor/one_matrix.hpp"
#include "kernels/factor/row_major.hpp"
#include "kernels/factor/share_batch.hpp"
#include "kernels/factor/tall_qr.hpp"
#include "types/buffer.hpp"

namespace tessera::kernels {
namespace {

// Large real matrices are factored by the library's own products, unless BLAS is multithreaded.
template <class T> bool by_own_products(std::int64_t steps) {
  return !complex_type<T> && steps >= large_matrix && !blas_has_threads();
}

// Both return the leading minor that is not positive, or -1.
template <class T> std::int64_t cholesky_by_own_products(std::int64_t n, const T* a, T* l) {
  const std::int64_t ld = leading_dimension(n);
  const Buffer memory = Buffer::allocate(n * ld * static_cast<std::int64_t>(sizeof(T)));
  T* const columns = reinterpret_cast<T*>(memory.data());
  transpose(a, n, n, n, columns, ld);
  const std::int64_t bad_at = cholesky_in_place<T>(n, columns, ld);
  transpose(columns, ld, n, n, l, n);
  for (std::int64_t i = 0; i < n; ++i) std::fill(l + i * n + i + 1, l + (i + 1) * n, T(0));
  return bad_at;
}
template <class T> std::int64_t cholesky_by_lapack(std::int64_t n, const T* a, T* l) {
  for (std::int64_t i = 0; i < n; ++i) {  // L read by columns is its transpose, upper triangular
    std::copy(a + i * n, a + i * n + i + 1, l + i * n);
    std::fill(l + i * n + i + 1, l + (i + 1) * n, T(0));
  }
  const int info = lapack::potrf('U', static_cast<int>(n), l, static_cast<int>(std::max<std::int64_t>(n, 1)));
  return info > 0 ? info - 1 : -1;
}

template <class T> bool cholesky_one(std::int64_t n, const T* a, T* l, std::int64_t& bad_at) {
  Magnitude magnitude;
  for (std::int64_t i = 0; i < n; ++i) magnitude.add(a + i * n, i + 1);
  if (!magnitude.is_finite()) {
    for (std::int64_t i = 0; i < n; ++i) {
      fill_nan(l + i * n, i + 1);
      std::fill(l + i * n + i + 1, l + (i + 1) * n, T(0));
    }
    return true;
  }
  if constexpr (complex_type<T>)
    bad_at = cholesky_by_lapack(n, a, l);
  else
    bad_at = by_own_products<T>(n) ? cholesky_by_own_products(n, a, l) : cholesky_by_lapack(n, a, l);
  return bad_at < 0;
}

template <class T> struct QrSizes {
  QrSizes(std::int64_t m, std::int64_t n, bool complete)
      : m_(lapack_int(m, "a matrix extent")),
        n_(lapack_int(n, "a matrix extent")),
        k_(std::min(m_, n_)),
        q_columns_(complete ? m_ : k_),
        by_chunks_(!complete && goes_by_chunks(m, n, sizeof(T))),
        ld_(by_own_products<T>(k_) ? static_cast<int>(leading_dimension(m)) : m_) {
    if (k_ == 0 || by_chunks_ || by_own_products<T>(k_)) return;
    T answer[2] = {}, none{};
    lapack::geqrf(m_, n_, &none, m_, &none, &answer[0], -1);
    lapack::orgqr(m_, q_columns_, k_, &none, m_, &none, &answer[1], -1);
    work_size_ =
        std::max({queried_size(answer[0], "a workspace"), queried_size(answer[1], "a workspace"), 1});
  }
  // LAPACK writes Q over the reflectors.
  std::int64_t columns_size() const {
    return std::int64_t{ld_} * (work_size_ == 0 ? n_ : std::max(n_, q_columns_)) + looked_at_beyond<T>(ld_);
  }
  std::int64_t q_size() const { return work_size_ == 0 && !by_chunks_ ? std::int64_t{ld_} * q_columns_ : 0; }
  std::int64_t bytes() const {
    const std::int64_t chunks =
        by_chunks_ ? chunked_qr_workspace(m_, n_, sizeof(T)) + std::int64_t{n_} * n_ : 0;
    return (columns_size() + q_size() + k_ + work_size_ + chunks) * static_cast<std::int64_t>(sizeof(T));
  }
  int m_, n_, k_, q_columns_;
  bool by_chunks_;
  int ld_, work_size_ = 0;
};

template <class T> class Qr : QrSizes<T> {
 public:
  explicit Qr(const QrSizes<T>& sizes)
      : QrSizes<T>(sizes), columns_(sizes.columns_size()), tau_(std::max(k_, 1)), work_(work_size_) {}
  void run(const T* a, T* q, T* r) {
    if (k_ == 0) {  // nothing to factor: Q is the identity
      if (q != nullptr)
        for (int i = 0; i < m_; ++i)
          for (int j = 0; j < q_columns_; ++j) q[std::int64_t{i} * q_columns_ + j] = T(i == j ? 1 : 0);
      return;
    }
    Magnitude magnitude;
    magnitude.add(a, std::int64_t{m_} * n_);
    if (!magnitude.is_finite()) return blank(q, r);
    transpose(a, n_, m_, n_, columns_.data(), ld_);
    if (this->by_chunks_) return by_chunks(q, r);
    factor(q != nullptr);
    if (r != nullptr) copy_r(r);
    if (q != nullptr) transpose(q_of_columns(), ld_, q_columns_, m_, q, q_columns_);
  }

 private:
  void factor(bool with_q) {
    if constexpr (!complex_type<T>)
      if (by_own_products<T>(k_)) {
        if (with_q) q_.resize(this->q_size());
        return qr_in_place<T>(m_, n_, columns_.data(), ld_, q_columns_, with_q ? q_.data() : nullptr);
      }
    lapack::geqrf(m_, n_, columns_.data(), m_, tau_.data(), work_.data(), work_size_);
  }
  const T* q_of_columns() {
    if (!q_.empty()) return q_.data();
    lapack::orgqr(m_, q_columns_, k_, columns_.data(), m_, tau_.data(), work_.data(), work_size_);
    return columns_.data();
  }
  // Without q the signs of r's rows are arbitrary.
  void by_chunks(T* q, T* r) {
    std::vector<T> triangle(static_cast<std::size_t>(n_) * n_);
    chunked_qr<T>(m_, n_, columns_.data(), ld_, triangle.data(), q != nullptr);
    if (q != nullptr) {
      with_householder_signs<T>(m_, n_, columns_.data(), ld_, triangle.data());
      transpose(columns_.data(), ld_, n_, m_, q, n_);
    }
    if (r != nullptr) transpose(triangle.data(), n_, n_, n_, r, n_);
  }
  void copy_r(T* r) const {
    transpose(columns_.data(), ld_, n_, k_, r, n_);
    for (std::int64_t i = 0; i < q_columns_; ++i)
      std::fill(r + i * n_, r + i * n_ + std::min<std::int64_t>(i, n_), T(0));
  }
  void blank(T* q, T* r) const {
    if (q != nullptr) fill_nan(q, std::int64_t{m_} * q_columns_);
    if (r == nullptr) return;
    std::fill(r, r + std::int64_t{q_columns_} * n_, T(0));
    for (std::int64_t i = 0; i < k_; ++i) fill_nan(r + i * n_ + i, n_ - i);
  }
  using QrSizes<T>::m_, QrSizes<T>::n_, QrSizes<T>::k_, QrSizes<T>::q_columns_, QrSizes<T>::ld_,
      QrSizes<T>::work_size_;
  std::vector<T> columns_, tau_, work_, q_;
};

}  // namespace

void lu_factor(Dtype dtype, std::int64_t batch, std::int64_t m64, std::int64_t n64, const void* a, void* lu,
               std::int32_t* pivots) {
  const int m = lapack_int(m64, "a matrix extent"), n = lapack_int(n64, "a matrix extent");
  if (m == 0 || n == 0) return;
  visit_inexact(dtype, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t steps = std::min(m, n);
    share_batch(batch, m64 * n64, [&](std::int64_t begin, std::int64_t end) {
      std::vector<T> columns(m64 * n64);
      for (std::int64_t i = begin; i < end; ++i) {
        const T* matrix = as<T>(a) + i * m64 * n64;
        T* result = as<T>(lu) + i * m64 * n64;
        std::int32_t* exchanged = pivots + i * steps;
        Magnitude magnitude;
        magnitude.add(matrix, m64 * n64);
        if (!magnitude.is_finite()) {
          fill_nan(result, m64 * n64);
          std::iota(exchanged, exchanged + steps, 0);
          continue;
        }
        const int exponent = exponent_to_scale<T>(magnitude);
        transpose(matrix, m, n, columns.data());
        if (exponent != 0) scale(columns.data(), m64 * n64, exponent);
        lapack::getrf(m, n, columns.data(), m, exchanged);
        for (std::int64_t s = 0; s < steps; ++s) --exchanged[s];
        transpose(columns.data(), n, m, result);
        if (exponent != 0)  // undo the scaling in U; L has none
          for (std::int64_t row = 0; row < std::min(m64, n64); ++row)
            scale(result + row * n64 + row, n64 - row, -exponent);
      }
      return Breakdown{};
    });
  });
  check_refusals();
}

Breakdown cholesky(Dtype dtype, std::int64_t batch, std::int64_t n64, const void* a, void* l) {
  const int n = lapack_int(n64, "a matrix extent");
  Breakdown breakdown;
  visit_inexact(dtype, [&](auto zero) {
    using T = decltype(zero);
    breakdown = share_batch(batch, n64 * n64, [&](std::int64_t begin, std::int64_t end) {
      Breakdown first;
      std::unique_ptr<bool[]> hard;
      if constexpr (!complex_type<T>)
        if (n <= largest_small_factor && batch >= least_small_systems && n > 0) {
          hard = std::make_unique<bool[]>(end - begin);
          cholesky_of_small(dtype, end - begin, n, as<T>(a) + begin * n64 * n64, as<T>(l) + begin * n64 * n64,
                            hard.get());
        }
      for (std::int64_t i = begin; i < end && n > 0; ++i) {
        if (hard && !hard[i - begin]) continue;
        std::int64_t bad_at = 0;
        if (!cholesky_one(n, as<T>(a) + i * n64 * n64, as<T>(l) + i * n64 * n64, bad_at) && !first.happened())
          first = {i, bad_at};
      }
      return first;
    });
  });
  check_refusals();
  return breakdown;
}

void qr(Dtype dtype, std::int64_t batch, std::int64_t m, std::int64_t n, bool complete, const void* a,
        void* q, void* r) {
  visit_inexact(dtype, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t columns = complete ? m : std::min(m, n);
    share_batch(batch, m * n, [&](std::int64_t begin, std::int64_t end) {
      Qr<T> qr(QrSizes<T>(m, n, complete));
      for (std::int64_t i = begin; i < end; ++i)
        qr.run(as<T>(a) + i * m * n, q ? as<T>(q) + i * m * columns : nullptr,
               r ? as<T>(r) + i * columns * n : nullptr);
      return Breakdown{};
    });
  });
  check_refusals();
}

std::int64_t lu_workspace(Dtype dtype, std::int64_t batch, std::int64_t m, std::int64_t n) {
  return workers_of(batch) * m * n * static_cast<std::int64_t>(itemsize(dtype));
}
std::int64_t cholesky_workspace(Dtype dtype, std::int64_t batch, std::int64_t n) {
  return visit_inexact(dtype, [&](auto zero) {
    const bool copies = by_own_products<decltype(zero)>(n);
    return copies ? workers_of(batch) * n * leading_dimension(n) * static_cast<std::int64_t>(sizeof zero) : 0;
  });
}
std::int64_t qr_workspace(Dtype dtype, std::int64_t batch, std::int64_t m, std::int64_t n, bool complete) {
  return workers_of(batch) *
         visit_inexact(dtype, [&](auto zero) { return QrSizes<decltype(zero)>(m, n, complete).bytes(); });
}

}  // namespace tessera::kernels
