#include <algorithm>
#include <complex>
#include <cstring>
#include <vector>

#include "kernels/dense/gemm.hpp"
#include "kernels/parallel.hpp"

namespace tessera::kernels {
namespace {

constexpr std::int64_t worth_packing = 1 << 14, worthwhile = std::int64_t{1} << 21;  // multiplications

MatrixView turned(const MatrixView& x) { return {x.data, x.column_stride, x.row_stride}; }

const void* at(const MatrixView& x, std::int64_t row, std::int64_t column, std::int64_t item) {
  return static_cast<const std::byte*>(x.data) + (row * x.row_stride + column * x.column_stride) * item;
}

template <class T> void add_rows(const T* sums, std::int64_t m, std::int64_t n, T* c, std::int64_t ldc) {
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) c[i * ldc + j] += sums[i * n + j];
}

// Products of other numbers than real ones. The complex ones have the parts of real ones (product_depth).
void by_own_product(const StridedProduct& p) {
  constexpr std::int64_t most = 1 << 16;  // sums of a part
  const auto item = static_cast<std::int64_t>(itemsize(p.dtype));
  const auto depth = is_complex(p.dtype) ? product_depth(p.k) : p.k;
  const auto rows = depth < p.k || p.accumulate ? std::clamp<std::int64_t>(most / p.n, 1, p.m) : p.m;
  std::vector<std::byte> sums;
  for (std::int64_t i = 0; i < p.m; i += rows) {
    const auto m = std::min(rows, p.m - i);
    std::byte* const c = static_cast<std::byte*>(p.c) + i * p.ldc * item;
    const auto add_part = [&](std::int64_t l, void* to, std::int64_t ld) {
      MatrixView a = p.a, b = p.b;
      a.data = at(p.a, i, l, item), b.data = at(p.b, l, 0, item);
      gemm_own(p.dtype, m, p.n, std::min(depth, p.k - l), a, b, to, ld);
    };
    if (!p.accumulate || !is_complex(p.dtype)) {
      for (std::int64_t r = 0; r < m && !p.accumulate; ++r)
        std::memset(c + r * p.ldc * item, 0, static_cast<std::size_t>(p.n * item));
      add_part(0, c, p.ldc);
    }
    for (std::int64_t l = p.accumulate ? 0 : depth; l < p.k && is_complex(p.dtype); l += depth) {
      sums.assign(static_cast<std::size_t>(m * p.n * item), std::byte{});
      add_part(l, sums.data(), p.n);
      if (p.dtype == complex64)
        add_rows(reinterpret_cast<const std::complex<float>*>(sums.data()), m, p.n,
                 reinterpret_cast<std::complex<float>*>(c), p.ldc);
      else
        add_rows(reinterpret_cast<const std::complex<double>*>(sums.data()), m, p.n,
                 reinterpret_cast<std::complex<double>*>(c), p.ldc);
    }
  }
}

void block(const StridedProduct& p, const Beside& beside) {
  if (!is_inexact(p.dtype) || is_complex(p.dtype)) {
    by_own_product(p);
  } else if (p.m * p.n * p.k <= worth_packing) {
    plain_product(p);
  } else if (p.n == 1 && p.ldc == 1) {  // vectors lie along the column
    packed_product({p.dtype, 1, p.m, p.k, turned(p.b), turned(p.a), p.accumulate, p.c, p.m});
  } else {
    return packed_product(p, beside);
  }
  if (beside.last_pass) beside.last_pass(0, p.m, 0, p.n);
}

}  // namespace

void ordered_product(const StridedProduct& p, const Beside& beside) {
  if (p.m == 0 || p.n == 0) return;
  const bool by_rows = p.m >= p.n;
  const auto item = static_cast<std::int64_t>(itemsize(p.dtype));
  const std::int64_t longer = by_rows ? p.m : p.n,
                     others = std::max<std::int64_t>((by_rows ? p.n : p.m) * p.k, 1);
  const std::int64_t step = longer >= 64 * threads() ? 16 : 1;
  const Beside alone{beside.last_pass};  // `meanwhile` communicates: only one thread may call it
  share(longer, std::max<std::int64_t>(worthwhile / others, 1), step,
        [&](std::int64_t begin, std::int64_t end) {
          StridedProduct part = p;
          const std::int64_t row = by_rows ? begin : 0, column = by_rows ? 0 : begin;
          (by_rows ? part.m : part.n) = end - begin;
          part.a.data = at(p.a, row, 0, item);
          part.b.data = at(p.b, 0, column, item);
          part.c = static_cast<std::byte*>(p.c) + (row * p.ldc + column) * item;
          block(part, beside_block(alone, row, column));
        });
}

void ordered_product_batched(const BatchedProduct& p, const Beside& beside) {
  const auto item = static_cast<std::int64_t>(itemsize(p.dtype));
  // Matrix i of the operand, rows x columns.
  const auto view = [&](const StoredMatrices& x, std::int64_t i, std::int64_t rows, std::int64_t columns) {
    const void* const data = static_cast<const std::byte*>(x.data) + i * x.stride * item;
    return x.transposed ? MatrixView{data, 1, rows} : MatrixView{data, columns, 1};
  };
  const auto step = p.at_a_time > 0 ? p.at_a_time : p.k;
  const auto some = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t l = 0; l < p.k; l += step) {
        MatrixView a = view(p.a, i, p.m, p.k), b = view(p.b, i, p.k, p.n);
        a.data = at(a, 0, l, item), b.data = at(b, l, 0, item);
        const bool is_last = l + step >= p.k;
        ordered_product({p.dtype, p.m, p.n, std::min(step, p.k - l), a, b, l > 0,
                         static_cast<std::byte*>(p.c) + i * p.m * p.n * item, p.n},
                        is_last ? beside_block(beside, i * p.m, 0) : Beside());
      }
  };
  if (p.batch < 4 * threads())
    some(0, p.batch);
  else
    share(p.batch,
          std::max<std::int64_t>((std::int64_t{1} << 18) / std::max<std::int64_t>(p.m * p.n * p.k, 1), 1),
          some);
}

}  // namespace tessera::kernels
