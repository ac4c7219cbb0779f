#include "kernels/dense/gemm.hpp"

#include <cblas.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

#include "base/thresholds.hpp"
#include "kernels/blas_types.hpp"
#include "kernels/dense/gemm_own.hpp"
#include "kernels/dense/symmetric_product.hpp"
#include "kernels/parallel.hpp"

namespace tessera::kernels {
namespace {

// BLAS uses 32-bit integers: larger extents are split.
constexpr std::int64_t blas_limit = std::int64_t{1} << 30;
constexpr std::int64_t blas_max_stride = std::numeric_limits<int>::max();
// For fewer multiplications a call of BLAS costs more than the product.
constexpr std::int64_t small_product = 2048, small_vector_product = 128;

CBLAS_TRANSPOSE flag(bool transpose) { return transpose ? CblasTrans : CblasNoTrans; }
int to_int(std::int64_t n) { return static_cast<int>(n); }

struct Operand {
  const std::byte* data;
  std::int64_t ld;
  bool transposed;
  std::size_t item;
  const std::byte* at(std::int64_t row, std::int64_t column) const {
    const std::int64_t offset = transposed ? column * ld + row : row * ld + column;
    return data + offset * static_cast<std::int64_t>(item);
  }
  MatrixView view() const { return {data, transposed ? 1 : ld, transposed ? ld : 1}; }
};

Operand operand(const StoredMatrix& x, Dtype dtype) {
  return {static_cast<const std::byte*>(x.data), std::max<std::int64_t>(x.ld, 1), x.transposed,
          itemsize(dtype)};
}

void blas_gemm(Dtype dtype, const Operand& a, const Operand& b, int m, int n, int k, bool accumulate, void* c,
               int ldc) {
  visit_inexact(dtype, [&]<class T>(T) {
    const T one(1), beta(accumulate ? 1 : 0);
    variant<T>(cblas_sgemm, cblas_dgemm, cblas_cgemm, cblas_zgemm)(
        CblasRowMajor, flag(a.transposed), flag(b.transposed), m, n, k, scalar(one), as<T>(a.data),
        to_int(a.ld), as<T>(b.data), to_int(b.ld), scalar(beta), as<T>(c), ldc);
  });
}

// y = op(a) x with x, y strided: the product when one operand is a vector.
void blas_gemv(Dtype dtype, const Operand& a, int rows, int columns, const void* x, int x_stride,
               bool accumulate, void* y, int y_stride) {
  // cblas expects the extents of the matrix as stored.
  const int stored_rows = a.transposed ? columns : rows, stored_columns = a.transposed ? rows : columns,
            lda = to_int(a.ld);
  visit_inexact(dtype, [&]<class T>(T) {
    const T one(1), beta(accumulate ? 1 : 0);
    variant<T>(cblas_sgemv, cblas_dgemv, cblas_cgemv, cblas_zgemv)(
        CblasRowMajor, flag(a.transposed), stored_rows, stored_columns, scalar(one), as<T>(a.data), lda,
        as<T>(x), x_stride, scalar(beta), as<T>(y), y_stride);
  });
}

void clear_rows(std::byte* c, std::int64_t rows, std::int64_t columns, std::int64_t ldc, std::size_t item) {
  for (std::int64_t i = 0; i < rows; ++i)
    std::memset(c + static_cast<std::size_t>(i * ldc) * item, 0, static_cast<std::size_t>(columns) * item);
}

void gemm_in_pieces(Dtype dtype, const Operand& a, const Operand& b, std::int64_t m, std::int64_t n,
                    std::int64_t k, bool accumulate, std::byte* c, std::int64_t ldc) {
  for (std::int64_t i = 0; i < m; i += blas_limit)
    for (std::int64_t j = 0; j < n; j += blas_limit)
      for (std::int64_t l = 0; l < k; l += blas_limit) {
        const std::int64_t rows = std::min(blas_limit, m - i), columns = std::min(blas_limit, n - j),
                           depth = std::min(blas_limit, k - l);
        Operand a_part = a, b_part = b;
        a_part.data = a.at(i, l);
        b_part.data = b.at(l, j);
        std::byte* c_part = c + (i * ldc + j) * static_cast<std::int64_t>(a.item);
        const bool add = accumulate || l > 0;
        if (!add && (rows == 1 || columns == 1))
          clear_rows(c_part, rows, columns, ldc, a.item);  // gemv may multiply old NaNs by 0
        if (columns == 1)
          blas_gemv(dtype, a_part, to_int(rows), to_int(depth), b_part.data, b.transposed ? 1 : to_int(b.ld),
                    add, c_part, to_int(ldc));
        else if (rows == 1) {  // the row c = row a * b is the column b' * a'
          b_part.transposed = !b_part.transposed;
          blas_gemv(dtype, b_part, to_int(columns), to_int(depth), a_part.data,
                    a.transposed ? to_int(a.ld) : 1, add, c_part, 1);
        } else
          blas_gemm(dtype, a_part, b_part, to_int(rows), to_int(columns), to_int(depth), add, c_part,
                    to_int(ldc));
      }
}

// Gives each thread a block of rows or columns of c whose ends are multiples of any BLAS's tile. BLAS may
// round elements of a partial tile in another order than those of a full one.
template <class Product>
void share_product(std::int64_t m, std::int64_t n, std::int64_t k, Product&& product) {
  constexpr std::int64_t tile = 192, worthwhile = std::int64_t{1} << 21;  // multiplications
  const bool by_rows = m >= n;
  const std::int64_t longer = by_rows ? m : n, others = std::max<std::int64_t>((by_rows ? n : m) * k, 1);
  const std::int64_t step = longer >= 4 * tile * threads() ? tile : longer >= 64 * threads() ? 16 : 1;
  share(longer, std::max<std::int64_t>(threshold(worthwhile) / others, 1), step,
        [&](std::int64_t begin, std::int64_t end) {
          if (by_rows)
            product(begin, 0, end - begin, n);
          else
            product(0, begin, m, end - begin);
        });
}

// One matrix product by the fastest implementation for its dtype and shape.
class Product {
 public:
  explicit Product(const MatrixProduct& p)
      : dtype_(p.dtype),
        k_(p.k),
        a_(operand(p.a, p.dtype)),
        b_(operand(p.b, p.dtype)),
        accumulate_(p.accumulate),
        c_(static_cast<std::byte*>(p.c)),
        ldc_(p.ldc) {
    const bool small = std::max({p.m, p.n, p.k}) <= small_product &&
                       p.m * p.n * p.k <= (p.m == 1 || p.n == 1 ? small_vector_product : small_product);
    const bool strides_fit = std::max({a_.ld, b_.ld, ldc_}) <= blas_max_stride;
    is_packed_ = has_packed_product(dtype_) && worth_packing(dtype_, p.m, p.n, p.k);
    is_blas_ = !is_packed_ && is_inexact(dtype_) && strides_fit && !small;
  }
  bool is_blas() const { return is_blas_; }

  void block(std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t columns,
             const Beside& beside) const {
    Operand a = a_, b = b_;
    a.data = a_.at(i, 0);
    b.data = b_.at(0, j);
    std::byte* const c = c_ + (i * ldc_ + j) * static_cast<std::int64_t>(a.item);
    if (is_packed_)
      return packed_product({dtype_, rows, columns, k_, a.view(), b.view(), accumulate_, c, ldc_}, beside);
    if (is_blas_) {
      in_slices(a, b, rows, columns, c, beside.meanwhile);
    } else {
      if (!accumulate_) clear_rows(c, rows, columns, ldc_, a.item);
      if (k_ > 0) gemm_own(dtype_, rows, columns, k_, a.view(), b.view(), c, ldc_);
      if (beside.meanwhile) beside.meanwhile();
    }
    if (beside.last_pass) beside.last_pass(0, rows, 0, columns);
  }

 private:
  // Multiplies in slices of rows and calls `meanwhile` between them.
  void in_slices(const Operand& a, const Operand& b, std::int64_t rows, std::int64_t columns, std::byte* c,
                 const std::function<void()>& meanwhile) const {
    constexpr std::int64_t slice_multiplications = std::int64_t{1} << 28;
    const std::int64_t slice =
        meanwhile ? std::max<std::int64_t>(64, threshold(slice_multiplications) / (columns * k_ + 1)) : rows;
    for (std::int64_t i = 0; i < rows; i += slice) {
      Operand part = a;
      part.data = a.at(i, 0);
      gemm_in_pieces(dtype_, part, b, std::min(slice, rows - i), columns, k_, accumulate_,
                     c + i * ldc_ * static_cast<std::int64_t>(a.item), ldc_);
      if (meanwhile) meanwhile();
    }
  }

  Dtype dtype_;
  std::int64_t k_;
  Operand a_, b_;
  bool accumulate_, is_packed_, is_blas_;
  std::byte* c_;
  std::int64_t ldc_;
};

// Whether a call per matrix would take longer than its product.
bool is_small_batch(const BatchedProduct& p) {
  constexpr std::int64_t few_multiplications = 256;
  return p.batch > 1 && is_inexact(p.dtype) && !p.a.transposed && !p.b.transposed && p.m > 0 && p.n > 0 &&
         p.n <= small_products_columns && p.k > 0 && std::max(p.m, p.k) <= few_multiplications &&
         p.m * p.n * p.k <= few_multiplications;
}

}  // namespace

Beside beside_block(const Beside& whole, std::int64_t row, std::int64_t column) {
  if (!whole.last_pass || (row == 0 && column == 0)) return whole;
  return {[&whole, row, column](std::int64_t i, std::int64_t rows, std::int64_t j, std::int64_t columns) {
            whole.last_pass(row + i, rows, column + j, columns);
          },
          whole.meanwhile};
}

void gemm(const MatrixProduct& p, const Beside& beside) {
  if (p.m == 0 || p.n == 0 || symmetric_product(p, beside)) return;
  const Product product(p);
  if (threads() == 1 || (product.is_blas() && threads_in_blas() == 1))
    return product.block(0, 0, p.m, p.n, beside);
  const Beside alone{beside.last_pass};  // `meanwhile` communicates: not from several threads
  share_product(p.m, p.n, p.k, [&](std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t columns) {
    product.block(i, j, rows, columns, beside_block(alone, i, j));
  });
  if (beside.meanwhile) beside.meanwhile();
}

void gemm_batched(const BatchedProduct& p, const Beside& beside) {
  const std::int64_t m = p.m, n = p.n, k = p.k;
  const auto item = static_cast<std::int64_t>(itemsize(p.dtype));
  const auto product = [&](std::int64_t i, std::int64_t rows) -> MatrixProduct {
    return {p.dtype,
            rows,
            n,
            k,
            {static_cast<const std::byte*>(p.a.data) + i * p.a.stride * item, p.a.transposed ? m : k,
             p.a.transposed},
            {static_cast<const std::byte*>(p.b.data) + i * p.b.stride * item, p.b.transposed ? k : n,
             p.b.transposed},
            static_cast<std::byte*>(p.c) + i * m * n * item,
            n};
  };
  // Products that share b and are contiguous in a are one taller product.
  if (p.batch > 1 && !p.a.transposed && p.b.stride == 0 && p.a.stride == m * k)
    return gemm(product(0, p.batch * m), beside);
  const bool is_small = is_small_batch(p);
  const auto some = [&](std::int64_t begin, std::int64_t end) {
    if (!is_small) {
      for (std::int64_t i = begin; i < end; ++i) gemm(product(i, m), beside_block(beside, i * m, 0));
      return;
    }
    const auto first = product(begin, m);
    multiply_small(p.dtype,
                   {end - begin, m, n, k, first.a.data, p.a.stride, first.b.data, p.b.stride, first.c});
    if (beside.last_pass) beside.last_pass(begin * m, (end - begin) * m, 0, n);
    if (beside.meanwhile) beside.meanwhile();
  };
  if (p.batch < 4 * threads() || (!is_small && is_inexact(p.dtype) && threads_in_blas() == 1))
    some(0, p.batch);  // each product on all threads
  else
    share(p.batch, std::max<std::int64_t>((std::int64_t{1} << 18) / std::max<std::int64_t>(m * n * k, 1), 1),
          some);
}

}  // namespace tessera::kernels
