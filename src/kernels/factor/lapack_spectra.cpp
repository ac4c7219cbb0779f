#include "kernels/factor/lapack.hpp"

#include <algorithm>
#include <vector>

#include "kernels/dense/gemm.hpp"
#include "kernels/factor/lapack_calls.hpp"
#include "kernels/factor/lapack_workspace.hpp"
#include "kernels/factor/magnitude.hpp"
#include "kernels/factor/row_major.hpp"
#include "kernels/factor/share_batch.hpp"

namespace tessera::kernels {
namespace {

// LAPACK gets the matrix by columns and reads its lower triangle, as NumPy and JAX call it: the signs of
// eigenvectors, which nothing else determines, are theirs. For values alone it gets the rows, and reads them
// as the upper triangle of the transpose, which is faster.
template <class T> struct EighSizes {
  EighSizes(std::int64_t n, bool vectors) : n_(lapack_int(n, "a matrix extent")), job_(vectors ? 'V' : 'N') {
    if (n_ == 0) return;
    T size{}, none{};
    real_of<T> real_size = 0, w = 0;
    int int_size = 0;
    call(&none, &w, &size, -1, &real_size, -1, &int_size, -1);
    work_size_ = std::max(queried_size(size, "a workspace"), 1);
    real_size_ = std::max(queried_size(real_size, "a workspace"), 1);
    int_size_ = std::max(int_size, 1);
  }
  std::int64_t matrix_size() const { return std::int64_t{n_} * n_ + looked_at_beyond<T>(n_); }
  std::int64_t room_for_work() const { return work_size_ + looked_at_beyond<T>(n_); }
  std::int64_t bytes() const {
    return static_cast<std::int64_t>((matrix_size() + room_for_work()) * sizeof(T) +
                                     real_size_ * sizeof(real_of<T>) + int_size_ * sizeof(int));
  }
  int call(T* matrix, real_of<T>* w, T* work, int lwork, [[maybe_unused]] real_of<T>* rwork,
           [[maybe_unused]] int lrwork, int* iwork, int liwork) const {
    int info = 0;
    const char uplo = job_ == 'V' ? 'L' : 'U';
    if constexpr (complex_type<T>)
      variant<T>(cheevd_, zheevd_)(&job_, &uplo, &n_, matrix, &n_, w, work, &lwork, rwork, &lrwork, iwork,
                                   &liwork, &info);
    else
      variant<T>(ssyevd_, dsyevd_)(&job_, &uplo, &n_, matrix, &n_, w, work, &lwork, iwork, &liwork, &info);
    return info;
  }
  int n_;
  char job_;
  int work_size_ = 0, real_size_ = 0, int_size_ = 0;
};

template <class T> class Eigh : EighSizes<T> {
 public:
  explicit Eigh(const EighSizes<T>& sizes)
      : EighSizes<T>(sizes),
        matrix_(sizes.matrix_size()),
        work_(sizes.room_for_work()),
        real_work_(real_size_),
        int_work_(int_size_) {}
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
    if (v != nullptr)
      transpose(a, n, n, matrix_.data());
    else
      std::copy(a, a + n * n, matrix_.begin());
    const int info = this->call(matrix_.data(), w, work_.data(), work_size_, real_work_.data(), real_size_,
                                int_work_.data(), int_size_);
    if (info != 0) return false;
    if (v != nullptr) transpose(matrix_.data(), n, n, v);
    return true;
  }

 private:
  using EighSizes<T>::n_, EighSizes<T>::work_size_, EighSizes<T>::real_size_, EighSizes<T>::int_size_;
  std::vector<T> matrix_, work_;
  std::vector<real_of<T>> real_work_;
  std::vector<int> int_work_;
};

// LAPACK gets the matrix by columns, as NumPy and JAX call it: the signs of singular vectors, which nothing
// else determines, are theirs.
template <class T> struct SvdSizes {
  SvdSizes(std::int64_t m, std::int64_t n, bool full, bool vectors)
      : m_(lapack_int(m, "a matrix extent")),
        n_(lapack_int(n, "a matrix extent")),
        k_(std::min(m_, n_)),
        job_(!vectors ? 'N'
             : full   ? 'A'
                      : 'S'),
        u_columns_(full ? m_ : k_),
        v_rows_(full ? n_ : k_) {
    if (k_ == 0) return;
    const std::int64_t small = k_, large = std::max(m_, n_);
    int_size_ = 8 * small;
    if constexpr (complex_type<T>)
      real_size_ =
          vectors ? std::max(5 * small * small + 5 * small, 2 * large * small + 2 * small * small + small)
                  : 7 * small;
    T size{}, none{};
    real_of<T> s = 0;
    int no_int = 0;
    call(&none, &none, &s, &none, &size, -1, &s, &no_int);
    work_size_ = std::max(queried_size(size, "a workspace"), 1);
  }
  std::int64_t matrix_size() const { return std::int64_t{m_} * n_ + looked_at_beyond<T>(m_); }
  std::int64_t room_for_work() const { return work_size_ + looked_at_beyond<T>(std::max(m_, n_)); }
  std::int64_t u_size() const { return job_ == 'N' ? 1 : std::int64_t{m_} * u_columns_; }
  std::int64_t vh_size() const { return job_ == 'N' ? 1 : std::int64_t{v_rows_} * n_; }
  std::int64_t bytes() const {
    return static_cast<std::int64_t>((matrix_size() + room_for_work() + u_size() + vh_size()) * sizeof(T) +
                                     real_size_ * sizeof(real_of<T>) + int_size_ * sizeof(int));
  }
  int call(T* matrix, T* u, real_of<T>* s, T* vh, T* work, int lwork, [[maybe_unused]] real_of<T>* rwork,
           int* iwork) const {
    int info = 0;
    const int ld_vh = std::max(v_rows_, 1);
    if constexpr (complex_type<T>)
      variant<T>(cgesdd_, zgesdd_)(&job_, &m_, &n_, matrix, &m_, s, u, &m_, vh, &ld_vh, work, &lwork, rwork,
                                   iwork, &info);
    else
      variant<T>(sgesdd_, dgesdd_)(&job_, &m_, &n_, matrix, &m_, s, u, &m_, vh, &ld_vh, work, &lwork, iwork,
                                   &info);
    return info;
  }
  int m_, n_, k_;
  char job_;
  int u_columns_, v_rows_, work_size_ = 0;
  std::int64_t real_size_ = 0, int_size_ = 0;
};

template <class T> class Svd : SvdSizes<T> {
 public:
  explicit Svd(const SvdSizes<T>& sizes)
      : SvdSizes<T>(sizes),
        matrix_(sizes.matrix_size()),
        work_(sizes.room_for_work()),
        u_(sizes.u_size()),
        vh_(sizes.vh_size()),
        real_work_(sizes.real_size_),
        int_work_(sizes.int_size_) {}
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
    transpose(a, m_, n_, matrix_.data());
    const int info = this->call(matrix_.data(), u_.data(), s, vh_.data(), work_.data(), work_size_,
                                real_work_.data(), int_work_.data());
    if (info != 0) return false;
    if (u != nullptr) transpose(u_.data(), u_columns_, m_, u), transpose(vh_.data(), n_, v_rows_, vh);
    return true;
  }

 private:
  using SvdSizes<T>::m_, SvdSizes<T>::n_, SvdSizes<T>::k_, SvdSizes<T>::u_columns_, SvdSizes<T>::v_rows_,
      SvdSizes<T>::work_size_;
  std::vector<T> matrix_, work_, u_, vh_;
  std::vector<real_of<T>> real_work_;
  std::vector<int> int_work_;
};

}  // namespace

Breakdown eigh(Dtype dtype, std::int64_t batch, std::int64_t n, const void* a, void* w, void* v) {
  Breakdown breakdown;
  visit_inexact(dtype, [&](auto zero) {
    using T = decltype(zero);
    breakdown = share_batch(batch, n * n, [&](std::int64_t begin, std::int64_t end) {
      Eigh<T> eigh(EighSizes<T>(n, v != nullptr));
      Breakdown first;
      for (std::int64_t i = begin; i < end; ++i)
        if (!eigh.run(as<T>(a) + i * n * n, as<real_of<T>>(w) + i * n, v ? as<T>(v) + i * n * n : nullptr) &&
            !first.happened())
          first = {i, 0};
      return first;
    });
  });
  check_refusals();
  return breakdown;
}

namespace {
// A tall matrix is first reduced to R by a QR of blocks of rows.
constexpr std::int64_t tall_rows_per_column = 8;

Breakdown tall_svd(Dtype dtype, std::int64_t batch, std::int64_t m, std::int64_t n, const void* a, void* u,
                   void* s, void* vh) {
  const auto item = static_cast<std::int64_t>(itemsize(dtype));
  const auto matrix = [&](const void* all, std::int64_t i, std::int64_t elements, std::int64_t size) {
    return static_cast<const std::byte*>(all) + i * elements * size;
  };
  const auto result = [&](void* all, std::int64_t i, std::int64_t elements, std::int64_t size) {
    return all == nullptr ? nullptr : static_cast<std::byte*>(all) + i * elements * size;
  };
  std::vector<std::byte> q(u == nullptr ? 0 : m * n * item), r(n * n * item),
      u_of_r(u == nullptr ? 0 : n * n * item);
  Breakdown first;
  for (std::int64_t i = 0; i < batch; ++i) {
    qr(dtype, 1, m, n, false, matrix(a, i, m * n, item), u == nullptr ? nullptr : q.data(), r.data());
    const auto of_r = svd(dtype, 1, n, n, false, r.data(), u == nullptr ? nullptr : u_of_r.data(),
                          result(s, i, n, static_cast<std::int64_t>(itemsize(real_dtype(dtype)))),
                          result(vh, i, n * n, item));
    if (of_r.happened() && !first.happened()) first = {i, 0};
    if (u != nullptr) gemm({dtype, m, n, n, {q.data(), n}, {u_of_r.data(), n}, result(u, i, m * n, item), n});
  }
  return first;
}
bool is_tall(std::int64_t m, std::int64_t n, bool full) {
  constexpr std::int64_t least_rows = 512;
  return !full && n > 0 && m >= least_rows && m >= tall_rows_per_column * n;
}
}  // namespace

Breakdown svd(Dtype dtype, std::int64_t batch, std::int64_t m, std::int64_t n, bool full, const void* a,
              void* u, void* s, void* vh) {
  if (is_tall(m, n, full)) return tall_svd(dtype, batch, m, n, a, u, s, vh);
  Breakdown breakdown;
  const std::int64_t k = std::min(m, n), u_size = m * (full ? m : k), v_size = (full ? n : k) * n;
  visit_inexact(dtype, [&](auto zero) {
    using T = decltype(zero);
    breakdown = share_batch(batch, m * n, [&](std::int64_t begin, std::int64_t end) {
      Svd<T> svd(SvdSizes<T>(m, n, full, u != nullptr));
      Breakdown first;
      for (std::int64_t i = begin; i < end; ++i)
        if (!svd.run(as<T>(a) + i * m * n, u ? as<T>(u) + i * u_size : nullptr, as<real_of<T>>(s) + i * k,
                     u ? as<T>(vh) + i * v_size : nullptr) &&
            !first.happened())
          first = {i, 0};
      return first;
    });
  });
  check_refusals();
  return breakdown;
}

std::int64_t eigh_workspace(Dtype dtype, std::int64_t batch, std::int64_t n, bool vectors) {
  return workers_of(batch) *
         visit_inexact(dtype, [&](auto zero) { return EighSizes<decltype(zero)>(n, vectors).bytes(); });
}
std::int64_t svd_workspace(Dtype dtype, std::int64_t batch, std::int64_t m, std::int64_t n, bool full,
                           bool vectors) {
  if (is_tall(m, n, full))
    return qr_workspace(dtype, 1, m, n, false) + svd_workspace(dtype, 1, n, n, false, vectors) +
           ((vectors ? m + n : 0) + n) * n * static_cast<std::int64_t>(itemsize(dtype));
  return workers_of(batch) * visit_inexact(dtype, [&](auto zero) {
           return SvdSizes<decltype(zero)>(m, n, full, vectors).bytes();
         });
}

}  // namespace tessera::kernels
