#include "kernels/factor/lapack.hpp"

#include <algorithm>
#include <memory>

#include "kernels/factor/lapack_calls.hpp"
#include "kernels/factor/lapack_workspace.hpp"
#include "kernels/factor/magnitude.hpp"
#include "kernels/factor/panel_factor.hpp"
#include "kernels/factor/row_major.hpp"
#include "kernels/factor/share_batch.hpp"
#include "types/buffer.hpp"

namespace tessera::kernels {
namespace {

// Large real matrices are factored with the library's own products, on all threads. Returns getrf's result.
template <class T> int factor_columns(int n, T* a, int ld, int* pivots) {
  constexpr int large = 512;
  if constexpr (!complex_type<T>)
    if (n >= large && !blas_has_threads()) {
      std::vector<std::int64_t> exchanged(n);
      const std::int64_t zero_pivot = lu_panel<T>(n, n, a, ld, exchanged.data());
      std::transform(exchanged.begin(), exchanged.end(), pivots,
                     [](std::int64_t row) { return static_cast<int>(row) + 1; });
      return static_cast<int>(zero_pivot) + 1;
    }
  return lapack::getrf(n, n, a, ld, pivots);
}

// Columns of b that are not finite give columns of NaN.
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

template <class T> struct SolverSizes {
  SolverSizes(std::int64_t n, std::int64_t k)
      : n_(lapack_int(n, "a matrix extent")),
        k_(lapack_int(k, "a number of right-hand sides")),
        ld_(static_cast<int>(leading_dimension(n_))) {}
  std::int64_t factor_bytes() const { return std::int64_t{ld_} * n_ * static_cast<std::int64_t>(sizeof(T)); }
  std::int64_t columns_size() const { return std::int64_t{n_} * std::max(k_, 1); }
  std::int64_t bytes() const {
    return factor_bytes() + columns_size() * static_cast<std::int64_t>(sizeof(T)) +
           n_ * static_cast<std::int64_t>(sizeof(int));
  }
  int n_, k_, ld_;
};

template <class T> class Solver : SolverSizes<T> {
 public:
  explicit Solver(const SolverSizes<T>& sizes)
      : SolverSizes<T>(sizes),
        memory_(Buffer::allocate(sizes.factor_bytes())),
        columns_(sizes.columns_size()),
        pivots_(n_) {}

  // Row-major a is a^T to LAPACK: it is factored so and used transposed, so that a is copied once and never
  // transposed. Returns the index of a zero pivot, or -1.
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

  // If the matrix was scaled, its right-hand sides are scaled too.
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

  // Estimates the condition number at the cost of one more right-hand side.
  double condition(const Magnitude& matrix) {
    for (std::int64_t i = 0; i < n_; ++i) columns_[i] = static_cast<real_of<T>>(random_sign(i));
    lapack::getrs('T', n_, 1, factor(), ld_, pivots_.data(), columns_.data(), n_);
    Magnitude solution;
    solution.add(columns_.data(), n_);
    return estimated_rcond(n_, matrix, solution);
  }

  using SolverSizes<T>::n_, SolverSizes<T>::k_, SolverSizes<T>::ld_;
  Buffer memory_;
  std::vector<T> columns_;
  std::vector<int> pivots_;
};

template <class T> Breakdown solve_all(std::int64_t batch, std::int64_t n, std::int64_t k, const T* a,
                                       const T* b, T* x, double* rcond) {
  std::unique_ptr<bool[]> hard;
  if (rcond != nullptr) std::fill(rcond, rcond + batch, 1.0);
  if constexpr (!complex_type<T>) {
    if (n <= largest_small_system && k <= largest_small_system && batch >= least_small_systems) {
      hard = std::make_unique<bool[]>(batch);
      solve_small_systems(dtype_of<T>(), batch, n, k, a, b, x, hard.get());
      Magnitude all;
      all.add(b, batch * n * k);
      for (std::int64_t i = 0; i < batch && !all.is_finite(); ++i)
        blank_columns_of_nan(n, k, b + i * n * k, x + i * n * k);
    }
  }
  return share_batch(batch, hard ? 1 : n * n, [&](std::int64_t begin, std::int64_t end) {
    Solver<T> solver(SolverSizes<T>(n, k));
    Breakdown breakdown;
    for (std::int64_t i = begin; i < end; ++i) {
      if (hard && !hard[i]) continue;
      const std::int64_t zero_at =
          solver.run(a + i * n * n, b + i * n * k, x + i * n * k, rcond == nullptr ? nullptr : rcond + i);
      if (zero_at >= 0 && !breakdown.happened()) breakdown = {i, zero_at};
    }
    return breakdown;
  });
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

std::int64_t solve_workspace(Dtype dtype, std::int64_t batch, std::int64_t n, std::int64_t k) {
  if (n == 0 || batch == 0) return 0;
  return workers_of(batch) *
         visit_inexact(dtype, [&](auto zero) { return SolverSizes<decltype(zero)>(n, k).bytes(); });
}

}  // namespace tessera::kernels
