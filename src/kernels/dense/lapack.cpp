#include "kernels/dense/lapack.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "kernels/dense/lapack_calls.hpp"
#include "kernels/dense/magnitude.hpp"
#include "kernels/dense/panel_factor.hpp"
#include "kernels/threads.hpp"
#include "types/buffer.hpp"

namespace tessera::kernels {
namespace {

template <class T> const T* as(const void* p) { return static_cast<const T*>(p); }
template <class T> T* as(void* p) { return static_cast<T*>(p); }

// to (columns, rows) = transposed from (rows, columns), both dense row-major; 16 x 16 tiles stay in the
// nearest cache.
template <class T> void transpose(const T* from, std::int64_t rows, std::int64_t columns, T* to) {
  constexpr std::int64_t tile = 16;
  for (std::int64_t i0 = 0; i0 < rows; i0 += tile)
    for (std::int64_t j0 = 0; j0 < columns; j0 += tile)
      for (std::int64_t i = i0; i < std::min(i0 + tile, rows); ++i)
        for (std::int64_t j = j0; j < std::min(j0 + tile, columns); ++j)
          to[j * rows + i] = from[i * columns + j];
}

template <class T> T conjugate(T value) {
  if constexpr (complex_type<T>)
    return std::conj(value);
  else
    return value;
}

// Large real matrices are factored with the library's own products, which suit a rank with one thread.
// Returns as getrf.
template <class T> int factor_columns(int n, T* a, int ld, int* pivots) {
  constexpr int large = 512;
  if constexpr (!complex_type<T>)
    if (n >= large && threads() == 1) {
      std::vector<std::int64_t> exchanged(n);
      const std::int64_t zero_pivot = lu_panel<T>(n, n, a, ld, exchanged.data());
      std::transform(exchanged.begin(), exchanged.end(), pivots,
                     [](std::int64_t row) { return static_cast<int>(row) + 1; });
      return static_cast<int>(zero_pivot) + 1;
    }
  return lapack::getrf(n, n, a, ld, pivots);
}

// Columns of a large matrix start in different sets of the caches.
int leading_dimension(int n) { return n >= 256 && n % 64 == 0 ? n + 8 : std::max(n, 1); }

// The columns of b that are not finite have no solution.
template <class T> void blank_columns_of_nan(std::int64_t n, std::int64_t k, const T* b, T* x) {
  Magnitude all;
  all.add(b, n * k);
  if (all.is_finite()) return;
  for (std::int64_t j = 0; j < k; ++j) {
    Magnitude column;
    for (std::int64_t i = 0; i < n; ++i) column.add(b + i * k + j, 1);
    if (!column.is_finite())
      for (std::int64_t i = 0; i < n; ++i) fill_nan(x + i * k + j, 1);
  }
}

template <class T> class Solver {
 public:
  Solver(std::int64_t n, std::int64_t k)
      : n_(lapack_int(n, "a matrix extent")),
        k_(lapack_int(k, "a number of right-hand sides")),
        ld_(leading_dimension(n_)),
        memory_(Buffer::allocate(ld_ * n * static_cast<std::int64_t>(sizeof(T)))),
        columns_(n * std::max<std::int64_t>(k, 1)),
        pivots_(n) {}

  // a's memory read by columns is a^T: it is factored as it lies and used transposed, so that a is copied
  // once and never turned around. Returns the pivot that is zero, or -1.
  std::int64_t run(const T* a, const T* b, T* x, double* rcond) {
    Magnitude magnitude;
    for (std::int64_t i = 0; i < n_; ++i) {
      std::copy(a + i * n_, a + (i + 1) * n_, factor() + i * ld_);
      magnitude.add(a + i * n_, n_);
    }
    if (rcond != nullptr) *rcond = 1;
    if (!magnitude.is_finite()) {
      fill_nan(x, size());
      return -1;
    }
    const int exponent = exponent_to_scale<T>(magnitude);
    if (exponent != 0)
      for (std::int64_t i = 0; i < n_; ++i) scale(factor() + i * ld_, n_, exponent);
    if (const int info = factor_columns(n_, factor(), ld_, pivots_.data()); info > 0) return info - 1;
    substitute(b, x, exponent);
    blank_columns_of_nan<T>(n_, k_, b, x);
    if (rcond != nullptr) *rcond = condition(magnitude.scaled(exponent));
    return -1;
  }

 private:
  T* factor() { return reinterpret_cast<T*>(memory_.data()); }
  std::int64_t size() const { return std::int64_t{n_} * k_; }

  // Of a matrix that was scaled the right-hand sides are scaled too.
  void substitute(const T* b, T* x, int exponent) {
    T* const values = k_ == 1 ? x : columns_.data();
    transpose(b, n_, k_, values);
    int of_b = 0;
    if (exponent != 0) {
      Magnitude magnitude;
      magnitude.add(b, size());
      of_b = exponent_to_scale<T>(magnitude);
      scale(values, size(), of_b);
    }
    lapack::getrs('T', n_, k_, factor(), ld_, pivots_.data(), values, n_);
    if (k_ != 1) transpose(values, k_, n_, x);
    if (exponent != 0) scale(x, size(), exponent - of_b);
  }

  // Costs one more right-hand side.
  double condition(const Magnitude& matrix) {
    for (std::int64_t i = 0; i < n_; ++i) columns_[i] = static_cast<real_of<T>>(random_sign(i));
    lapack::getrs('T', n_, 1, factor(), ld_, pivots_.data(), columns_.data(), n_);
    Magnitude solution;
    solution.add(columns_.data(), n_);
    return estimated_rcond(n_, matrix, solution);
  }

  int n_, k_, ld_;
  Buffer memory_;
  std::vector<T> columns_;
  std::vector<int> pivots_;
};

template <class T> Breakdown solve_all(std::int64_t batch, std::int64_t n, std::int64_t k, const T* a,
                                       const T* b, T* x, double* rcond) {
  std::unique_ptr<bool[]> hard;
  if (rcond != nullptr) std::fill(rcond, rcond + batch, 1.0);
  if constexpr (!complex_type<T>) {
    constexpr std::int64_t worthwhile = 4;  // systems, before a group of lanes pays
    if (n <= largest_small_system && k <= largest_small_system && batch >= worthwhile) {
      hard = std::make_unique<bool[]>(batch);
      solve_small_systems(dtype_of<T>(), batch, n, k, a, b, x, hard.get());
      Magnitude all;
      all.add(b, batch * n * k);
      for (std::int64_t i = 0; i < batch && !all.is_finite(); ++i)
        blank_columns_of_nan(n, k, b + i * n * k, x + i * n * k);
    }
  }
  Solver<T> solver(n, k);
  Breakdown breakdown;
  for (std::int64_t i = 0; i < batch; ++i) {
    if (hard && !hard[i]) continue;
    const std::int64_t zero_at =
        solver.run(a + i * n * n, b + i * n * k, x + i * n * k, rcond == nullptr ? nullptr : rcond + i);
    if (zero_at >= 0 && !breakdown.happened()) breakdown = {i, zero_at};
  }
  return breakdown;
}

template <class T> bool cholesky_one(int n, const T* a, T* l, std::int64_t& bad_at) {
  const auto at = [n](std::int64_t i, std::int64_t j) { return i * n + j; };
  Magnitude magnitude;
  for (int i = 0; i < n; ++i) {  // the memory of L read by columns is its transpose, upper triangular
    magnitude.add(a + at(i, 0), i + 1);
    std::copy(a + at(i, 0), a + at(i, 0) + i + 1, l + at(i, 0));
    std::fill(l + at(i, 0) + i + 1, l + at(i, 0) + n, T(0));
  }
  if (!magnitude.is_finite()) {
    for (int i = 0; i < n; ++i) fill_nan(l + at(i, 0), i + 1);
    return true;
  }
  const int info = lapack::potrf('U', n, l, std::max(n, 1));
  bad_at = info - 1;
  return info <= 0;
}

template <class T> class Qr {
 public:
  Qr(std::int64_t m, std::int64_t n, bool complete)
      : m_(lapack_int(m, "a matrix extent")),
        n_(lapack_int(n, "a matrix extent")),
        k_(std::min(m_, n_)),
        q_columns_(complete ? m_ : k_) {
    columns_.resize(m * std::max<std::int64_t>(n_, q_columns_));
    tau_.resize(std::max(k_, 1));
    if (m_ == 0 || n_ == 0) return;
    T answer[2] = {};
    lapack::geqrf(m_, n_, columns_.data(), m_, tau_.data(), &answer[0], -1);
    lapack::orgqr(m_, q_columns_, k_, columns_.data(), m_, tau_.data(), &answer[1], -1);
    work_.resize(
        std::max({queried_size(answer[0], "a workspace"), queried_size(answer[1], "a workspace"), 1}));
  }
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
    transpose(a, m_, n_, columns_.data());
    lapack::geqrf(m_, n_, columns_.data(), m_, tau_.data(), work_.data(), static_cast<int>(work_.size()));
    if (r != nullptr)
      for (int i = 0; i < q_columns_; ++i)
        for (int j = 0; j < n_; ++j)
          r[std::int64_t{i} * n_ + j] = i <= j && i < k_ ? columns_[std::int64_t{j} * m_ + i] : T(0);
    if (q == nullptr) return;
    lapack::orgqr(m_, q_columns_, k_, columns_.data(), m_, tau_.data(), work_.data(),
                  static_cast<int>(work_.size()));
    transpose(columns_.data(), q_columns_, m_, q);
  }

 private:
  void blank(T* q, T* r) const {
    if (q != nullptr) fill_nan(q, std::int64_t{m_} * q_columns_);
    if (r == nullptr) return;
    std::fill(r, r + std::int64_t{q_columns_} * n_, T(0));
    for (std::int64_t i = 0; i < k_; ++i) fill_nan(r + i * n_ + i, n_ - i);
  }
  int m_, n_, k_, q_columns_;
  std::vector<T> columns_, tau_, work_;
};

// Row-major memory read by columns is the conjugate of a Hermitian matrix: same eigenvalues, conjugate
// eigenvectors.
template <class T> class Eigh {
 public:
  Eigh(std::int64_t n, bool vectors)
      : n_(lapack_int(n, "a matrix extent")), job_(vectors ? 'V' : 'N'), matrix_(n * n) {
    if (n_ == 0) return;
    T size{};
    real_of<T> real_size = 0, w = 0;
    int int_size = 0;
    call(&w, &size, -1, &real_size, -1, &int_size, -1);
    work_.resize(std::max(queried_size(size, "a workspace"), 1));
    real_work_.resize(std::max(queried_size(real_size, "a workspace"), 1));
    int_work_.resize(std::max(int_size, 1));
  }
  bool run(const T* a, real_of<T>* w, T* v) {
    if (n_ == 0) return true;
    const std::int64_t n = n_;
    Magnitude magnitude;
    for (std::int64_t i = 0; i < n; ++i) magnitude.add(a + i * n, i + 1);
    if (!magnitude.is_finite()) {
      fill_nan(w, n);
      if (v != nullptr) fill_nan(v, n * n);
      return true;
    }
    std::copy(a, a + n * n, matrix_.begin());
    const int info =
        call(w, work_.data(), static_cast<int>(work_.size()), real_work_.data(),
             static_cast<int>(real_work_.size()), int_work_.data(), static_cast<int>(int_work_.size()));
    if (info != 0) return false;
    if (v != nullptr) {
      transpose(matrix_.data(), n, n, v);
      if constexpr (complex_type<T>)
        for (std::int64_t i = 0; i < n * n; ++i) v[i] = std::conj(v[i]);
    }
    return true;
  }

 private:
  int call(real_of<T>* w, T* work, int lwork, [[maybe_unused]] real_of<T>* rwork, [[maybe_unused]] int lrwork,
           int* iwork, int liwork) {
    int info = 0;
    const char uplo = 'U';
    if constexpr (std::is_same_v<T, float>)
      ssyevd_(&job_, &uplo, &n_, matrix_.data(), &n_, w, work, &lwork, iwork, &liwork, &info);
    else if constexpr (std::is_same_v<T, double>)
      dsyevd_(&job_, &uplo, &n_, matrix_.data(), &n_, w, work, &lwork, iwork, &liwork, &info);
    else if constexpr (std::is_same_v<T, c32>)
      cheevd_(&job_, &uplo, &n_, matrix_.data(), &n_, w, work, &lwork, rwork, &lrwork, iwork, &liwork, &info);
    else
      zheevd_(&job_, &uplo, &n_, matrix_.data(), &n_, w, work, &lwork, rwork, &lrwork, iwork, &liwork, &info);
    return info;
  }
  int n_;
  char job_;
  std::vector<T> matrix_, work_;
  std::vector<real_of<T>> real_work_;
  std::vector<int> int_work_;
};

// a read by columns is a^T = U' S V'^H, so V'^H read by rows is u and U' read by rows is vh: nothing is
// turned around.
template <class T> class Svd {
 public:
  Svd(std::int64_t m, std::int64_t n, bool full, bool vectors)
      : m_(lapack_int(m, "a matrix extent")),
        n_(lapack_int(n, "a matrix extent")),
        k_(std::min(m_, n_)),
        job_(!vectors ? 'N'
             : full   ? 'A'
                      : 'S'),
        u_columns_(full ? m_ : k_),
        v_rows_(full ? n_ : k_),
        matrix_(m * n) {
    if (k_ == 0) return;
    const std::int64_t small = k_, large = std::max(m_, n_);
    int_work_.resize(8 * small);
    if constexpr (complex_type<T>)
      real_work_.resize(
          vectors ? std::max(5 * small * small + 5 * small, 2 * large * small + 2 * small * small + small)
                  : 7 * small);
    T size{};
    real_of<T> s = 0;
    call(nullptr, &s, nullptr, &size, -1);
    work_.resize(std::max(queried_size(size, "a workspace"), 1));
  }
  bool run(const T* a, T* u, real_of<T>* s, T* vh) {
    if (k_ == 0) {
      for (auto [q, size] : {std::pair{u, u_columns_}, std::pair{vh, v_rows_}})
        if (q != nullptr)
          for (std::int64_t i = 0; i < size; ++i)
            for (std::int64_t j = 0; j < size; ++j) q[i * size + j] = T(i == j ? 1 : 0);
      return true;
    }
    Magnitude magnitude;
    magnitude.add(a, std::int64_t{m_} * n_);
    if (!magnitude.is_finite()) {
      fill_nan(s, k_);
      if (u != nullptr) fill_nan(u, std::int64_t{m_} * u_columns_), fill_nan(vh, std::int64_t{v_rows_} * n_);
      return true;
    }
    std::copy(a, a + std::int64_t{m_} * n_, matrix_.begin());
    return call(vh, s, u, work_.data(), static_cast<int>(work_.size())) == 0;
  }

 private:
  int call(T* left, real_of<T>* s, T* right, T* work, int lwork) {
    int info = 0;
    T none{};
    if (left == nullptr) left = right = &none;
    const int ld_right = std::max(u_columns_, 1);
    if constexpr (std::is_same_v<T, float>)
      sgesdd_(&job_, &n_, &m_, matrix_.data(), &n_, s, left, &n_, right, &ld_right, work, &lwork,
              int_work_.data(), &info);
    else if constexpr (std::is_same_v<T, double>)
      dgesdd_(&job_, &n_, &m_, matrix_.data(), &n_, s, left, &n_, right, &ld_right, work, &lwork,
              int_work_.data(), &info);
    else if constexpr (std::is_same_v<T, c32>)
      cgesdd_(&job_, &n_, &m_, matrix_.data(), &n_, s, left, &n_, right, &ld_right, work, &lwork,
              real_work_.data(), int_work_.data(), &info);
    else
      zgesdd_(&job_, &n_, &m_, matrix_.data(), &n_, s, left, &n_, right, &ld_right, work, &lwork,
              real_work_.data(), int_work_.data(), &info);
    return info;
  }
  int m_, n_, k_;
  char job_;
  int u_columns_, v_rows_;
  std::vector<T> matrix_, work_;
  std::vector<real_of<T>> real_work_;
  std::vector<int> int_work_;
};

// exponent_to_scale; the triangle is looked at only where its diagonal is tiny or huge.
template <class T> int exponent_of_triangle(std::int64_t n, bool lower, const T* a) {
  Magnitude diagonal, triangle;
  for (std::int64_t i = 0; i < n; ++i) diagonal.add(a + i * n + i, 1);
  if (diagonal.largest != 0 && exponent_to_scale<T>(diagonal) == 0) return 0;
  for (std::int64_t i = 0; i < n; ++i) triangle.add(a + i * n + (lower ? 0 : i), lower ? i + 1 : n - i);
  return exponent_to_scale<T>(triangle);
}

}  // namespace

Breakdown solve(Dtype dtype, std::int64_t batch, std::int64_t n, std::int64_t k, const void* a, const void* b,
                void* x, double* rcond) {
  if (n == 0 || batch == 0) return {};
  const auto breakdown = visit_inexact(dtype, [&](auto zero) {
    using T = decltype(zero);
    return solve_all(batch, n, k, as<T>(a), as<T>(b), as<T>(x), rcond);
  });
  check_refusals();
  return breakdown;
}

void lu_factor(Dtype dtype, std::int64_t batch, std::int64_t m64, std::int64_t n64, const void* a, void* lu,
               std::int32_t* pivots) {
  const int m = lapack_int(m64, "a matrix extent"), n = lapack_int(n64, "a matrix extent");
  if (m == 0 || n == 0) return;
  visit_inexact(dtype, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> columns(m64 * n64);
    const std::int64_t steps = std::min(m, n);
    for (std::int64_t i = 0; i < batch; ++i) {
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
      if (exponent != 0)  // L is that of the matrix as it was
        for (std::int64_t row = 0; row < std::min(m64, n64); ++row)
          scale(result + row * n64 + row, n64 - row, -exponent);
    }
  });
  check_refusals();
}

Breakdown cholesky(Dtype dtype, std::int64_t batch, std::int64_t n64, const void* a, void* l) {
  const int n = lapack_int(n64, "a matrix extent");
  Breakdown breakdown;
  visit_inexact(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < batch && n > 0; ++i) {
      std::int64_t bad_at = 0;
      if (!cholesky_one(n, as<T>(a) + i * n64 * n64, as<T>(l) + i * n64 * n64, bad_at) &&
          !breakdown.happened())
        breakdown = {i, bad_at};
    }
  });
  check_refusals();
  return breakdown;
}

void triangular_solve(Dtype dtype, std::int64_t batch, std::int64_t n64, std::int64_t k64, TriangleUse use,
                      const void* a, const void* b, void* x) {
  const int n = lapack_int(n64, "a matrix extent"), k = lapack_int(k64, "a number of right-hand sides");
  if (n == 0 || k == 0) return;
  visit_inexact(dtype, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> conjugated(
        use.conjugate && !use.transpose && complex_type<T> ? static_cast<std::size_t>(n64 * n64) : 0);
    std::vector<T> scaled;
    for (std::int64_t i = 0; i < batch; ++i) {
      const T* matrix = as<T>(a) + i * n64 * n64;
      if (!conjugated.empty()) {
        std::transform(matrix, matrix + n64 * n64, conjugated.begin(), conjugate<T>);
        matrix = conjugated.data();
      }
      const T* sides = as<T>(b) + i * n64 * k64;
      T* result = as<T>(x) + i * n64 * k64;
      std::copy(sides, sides + n64 * k64, result);
      const int exponent = use.unit_diagonal ? 0 : exponent_of_triangle(n64, use.lower, matrix);
      int of_sides = 0;
      if (exponent != 0) {
        scaled.assign(matrix, matrix + n64 * n64);
        scale(scaled.data(), n64 * n64, exponent);
        matrix = scaled.data();
        Magnitude magnitude;
        magnitude.add(sides, n64 * k64);
        scale(result, n64 * k64, of_sides = exponent_to_scale<T>(magnitude));
      }
      // By columns the memory holds x^T op(a)^T = b^T with a^T in the opposite triangle.
      const char trans = !use.transpose ? 'N' : use.conjugate ? 'C' : 'T';
      lapack::trsm_right(!use.lower, trans, use.unit_diagonal, k, n, matrix, n, result, k);
      if (exponent != 0) scale(result, n64 * k64, exponent - of_sides);
    }
  });
  check_refusals();
}

void qr(Dtype dtype, std::int64_t batch, std::int64_t m, std::int64_t n, bool complete, const void* a,
        void* q, void* r) {
  visit_inexact(dtype, [&](auto zero) {
    using T = decltype(zero);
    Qr<T> qr(m, n, complete);
    const std::int64_t columns = complete ? m : std::min(m, n);
    for (std::int64_t i = 0; i < batch; ++i)
      qr.run(as<T>(a) + i * m * n, q ? as<T>(q) + i * m * columns : nullptr,
             r ? as<T>(r) + i * columns * n : nullptr);
  });
  check_refusals();
}

Breakdown eigh(Dtype dtype, std::int64_t batch, std::int64_t n, const void* a, void* w, void* v) {
  Breakdown breakdown;
  visit_inexact(dtype, [&](auto zero) {
    using T = decltype(zero);
    Eigh<T> eigh(n, v != nullptr);
    for (std::int64_t i = 0; i < batch; ++i)
      if (!eigh.run(as<T>(a) + i * n * n, as<real_of<T>>(w) + i * n, v ? as<T>(v) + i * n * n : nullptr) &&
          !breakdown.happened())
        breakdown = {i, 0};
  });
  check_refusals();
  return breakdown;
}

Breakdown svd(Dtype dtype, std::int64_t batch, std::int64_t m, std::int64_t n, bool full, const void* a,
              void* u, void* s, void* vh) {
  Breakdown breakdown;
  const std::int64_t k = std::min(m, n), u_size = m * (full ? m : k), v_size = (full ? n : k) * n;
  visit_inexact(dtype, [&](auto zero) {
    using T = decltype(zero);
    Svd<T> svd(m, n, full, u != nullptr);
    for (std::int64_t i = 0; i < batch; ++i)
      if (!svd.run(as<T>(a) + i * m * n, u ? as<T>(u) + i * u_size : nullptr, as<real_of<T>>(s) + i * k,
                   u ? as<T>(vh) + i * v_size : nullptr) &&
          !breakdown.happened())
        breakdown = {i, 0};
  });
  check_refusals();
  return breakdown;
}

}  // namespace tessera::kernels
