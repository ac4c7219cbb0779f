#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/spectral/chase_blocks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/spectral/chase_blocks.hpp"

#ifndef TESSERA_CHASE_BLOCK_TYPES
#define TESSERA_CHASE_BLOCK_TYPES
namespace tessera::kernels {
namespace {

template <class T> struct ChaseFunctions {
  void (*multiply)(std::int64_t rows, std::int64_t columns, T scale, const T* a, std::int64_t ld, const T* x,
                   T* y);
  void (*reflect)(std::int64_t rows, std::int64_t columns, T* a, std::int64_t ld, const T* y, const T* x,
                  T tau, const T* v);
  void (*subtract)(std::int64_t rows, std::int64_t columns, T* a, std::int64_t ld, const T* y, const T* x);
  void (*reflect_both)(std::int64_t rows, T* a, std::int64_t ld, T tau, const T* v, T* work);
};

}  // namespace
}  // namespace tessera::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class T> struct Lanes {
  static constexpr hn::CappedTag<T, chase_block_rows> d{};
  static constexpr auto count = static_cast<std::int64_t>(hn::MaxLanes(d));
  // Columns at once: their coefficients stay in registers.
  static constexpr int columns = HWY_TARGET <= HWY_AVX3 ? 8 : 4;
  using Vector = hn::Vec<hn::CappedTag<T, chase_block_rows>>;
};

// y += a x for W columns.
template <int W, class T>
HWY_INLINE void add_columns(std::int64_t rows, const T* a, std::int64_t ld, const T* x, T* HWY_RESTRICT y) {
  constexpr auto d = Lanes<T>::d;
  typename Lanes<T>::Vector factor[W];
#pragma GCC unroll 8
  for (int c = 0; c < W; ++c) factor[c] = hn::Set(d, x[c]);
  for (std::int64_t i = 0; i < rows; i += Lanes<T>::count) {
    auto sum = hn::LoadU(d, y + i);
#pragma GCC unroll 8
    for (int c = 0; c < W; ++c) sum = hn::MulAdd(hn::LoadU(d, a + i + c * ld), factor[c], sum);
    hn::StoreU(sum, d, y + i);
  }
}

// to[c] = a[:, c]^T v for W columns.
template <int W, class T>
HWY_INLINE void dots(std::int64_t rows, const T* a, std::int64_t ld, const T* HWY_RESTRICT v, T* to) {
  constexpr auto d = Lanes<T>::d;
  typename Lanes<T>::Vector sum[W];
#pragma GCC unroll 8
  for (int c = 0; c < W; ++c) sum[c] = hn::Zero(d);
  for (std::int64_t i = 0; i < rows; i += Lanes<T>::count) {
    const auto left = hn::LoadU(d, v + i);
#pragma GCC unroll 8
    for (int c = 0; c < W; ++c) sum[c] = hn::MulAdd(hn::LoadU(d, a + i + c * ld), left, sum[c]);
  }
#pragma GCC unroll 8
  for (int c = 0; c < W; ++c) to[c] = hn::GetLane(hn::SumOfLanes(d, sum[c]));
}

// a -= y x^T for W columns.
template <int W, class T> HWY_INLINE void subtract_columns(std::int64_t rows, T* a, std::int64_t ld,
                                                           const T* HWY_RESTRICT y, const T* x) {
  constexpr auto d = Lanes<T>::d;
  typename Lanes<T>::Vector factor[W];
#pragma GCC unroll 8
  for (int c = 0; c < W; ++c) factor[c] = hn::Set(d, x[c]);
  for (std::int64_t i = 0; i < rows; i += Lanes<T>::count) {
    const auto left = hn::LoadU(d, y + i);
#pragma GCC unroll 8
    for (int c = 0; c < W; ++c) {
      T* const place = a + i + c * ld;
      hn::StoreU(hn::NegMulAdd(left, factor[c], hn::LoadU(d, place)), d, place);
    }
  }
}

// a -= y x^T + v w^T for W columns.
template <int W, class T> HWY_INLINE void subtract_columns(std::int64_t rows, T* a, std::int64_t ld,
                                                           const T* HWY_RESTRICT y, const T* x,
                                                           const T* HWY_RESTRICT v, const T* w) {
  constexpr auto d = Lanes<T>::d;
  typename Lanes<T>::Vector of_y[W], of_v[W];
#pragma GCC unroll 8
  for (int c = 0; c < W; ++c) of_y[c] = hn::Set(d, x[c]), of_v[c] = hn::Set(d, w[c]);
  for (std::int64_t i = 0; i < rows; i += Lanes<T>::count) {
    const auto first = hn::LoadU(d, y + i), second = hn::LoadU(d, v + i);
#pragma GCC unroll 8
    for (int c = 0; c < W; ++c) {
      T* const place = a + i + c * ld;
      const auto once = hn::NegMulAdd(first, of_y[c], hn::LoadU(d, place));
      hn::StoreU(hn::NegMulAdd(second, of_v[c], once), d, place);
    }
  }
}

// Calls work.template operator()<W>(column) for all columns, W of them at once or one.
template <class T, class F> HWY_INLINE void by_columns(std::int64_t columns, F&& work) {
  constexpr int width = Lanes<T>::columns;
  std::int64_t c = 0;
  for (; c + width <= columns; c += width) work.template operator()<width>(c);
  for (; c < columns; ++c) work.template operator()<1>(c);
}

template <class T> void multiply(std::int64_t rows, std::int64_t columns, T scale, const T* a,
                                 std::int64_t ld, const T* x, T* y) {
  constexpr auto d = Lanes<T>::d;
  std::fill_n(y, rows, T(0));
  by_columns<T>(columns, [&]<int W>(std::int64_t c) { add_columns<W>(rows, a + c * ld, ld, x + c, y); });
  for (std::int64_t i = 0; i < rows; i += Lanes<T>::count)
    hn::StoreU(hn::Mul(hn::Set(d, scale), hn::LoadU(d, y + i)), d, y + i);
}

template <class T> void reflect(std::int64_t rows, std::int64_t columns, T* a, std::int64_t ld, const T* y,
                                const T* x, T tau, const T* v) {
  T between = 0;  // v^T y
  if (y != nullptr) dots<1>(rows, y, 0, v, &between);
  by_columns<T>(columns, [&]<int W>(std::int64_t c) {
    T sums[W];
    T* const block = a + c * ld;
    dots<W>(rows, block, ld, v, sums);
    if (y == nullptr) {
      for (T& sum : sums) sum *= tau;
      return subtract_columns<W>(rows, block, ld, v, sums);
    }
    for (int i = 0; i < W; ++i) sums[i] = tau * (sums[i] - between * x[c + i]);
    subtract_columns<W>(rows, block, ld, y, x + c, v, sums);
  });
}

template <class T>
void subtract(std::int64_t rows, std::int64_t columns, T* a, std::int64_t ld, const T* y, const T* x) {
  by_columns<T>(columns, [&]<int W>(std::int64_t c) { subtract_columns<W>(rows, a + c * ld, ld, y, x + c); });
}

// y = a x for the lower triangle of a symmetric matrix: tiles of one vector of rows, below the tile on the
// diagonal with the transposed part in the same pass.
template <class T> HWY_INLINE void multiply_symmetric(std::int64_t rows, const T* a, std::int64_t ld,
                                                      const T* HWY_RESTRICT x, T* HWY_RESTRICT y) {
  constexpr auto d = Lanes<T>::d;
  constexpr int width = static_cast<int>(Lanes<T>::count);
  std::fill_n(y, rows, T(0));
  for (std::int64_t first = 0; first < rows; first += width) {
    const T* const tile = a + first + first * ld;
    typename Lanes<T>::Vector factor[width], sum[width];
    const auto on_diagonal = hn::LoadU(d, x + first);
    auto own = hn::LoadU(d, y + first);
#pragma GCC unroll 8
    for (int c = 0; c < width; ++c) {
      factor[c] = hn::Set(d, x[first + c]);
      const auto column = hn::MaskedLoad(hn::Not(hn::FirstN(d, c)), d, tile + c * ld);
      own = hn::MulAdd(column, factor[c], own);
      sum[c] = hn::Mul(hn::IfThenZeroElse(hn::FirstN(d, c + 1), column), on_diagonal);
    }
    hn::StoreU(own, d, y + first);
    for (std::int64_t i = width; first + i < rows; i += width) {
      const auto left = hn::LoadU(d, x + first + i);
      auto total = hn::LoadU(d, y + first + i);
#pragma GCC unroll 8
      for (int c = 0; c < width; ++c) {
        const auto column = hn::LoadU(d, tile + i + c * ld);
        total = hn::MulAdd(column, factor[c], total);
        sum[c] = hn::MulAdd(column, left, sum[c]);
      }
      hn::StoreU(total, d, y + first + i);
    }
#pragma GCC unroll 8
    for (int c = 0; c < width; ++c) y[first + c] += hn::GetLane(hn::SumOfLanes(d, sum[c]));
  }
}

// a -= x y^T + y x^T in the lower triangle.
template <class T> HWY_INLINE void subtract_both(std::int64_t rows, const T* HWY_RESTRICT x,
                                                 const T* HWY_RESTRICT y, T* a, std::int64_t ld) {
  constexpr auto d = Lanes<T>::d;
  constexpr int width = static_cast<int>(Lanes<T>::count);
  for (std::int64_t first = 0; first < rows; first += width) {
    T* const tile = a + first + first * ld;
    const auto x_first = hn::LoadU(d, x + first), y_first = hn::LoadU(d, y + first);
    for (int c = 0; c < width; ++c) {
      const auto lower = hn::Not(hn::FirstN(d, c));
      const auto once =
          hn::NegMulAdd(x_first, hn::Set(d, y[first + c]), hn::MaskedLoad(lower, d, tile + c * ld));
      hn::BlendedStore(hn::NegMulAdd(y_first, hn::Set(d, x[first + c]), once), lower, d, tile + c * ld);
    }
    constexpr int most = Lanes<T>::columns, at_once = std::min(width, most);
    for (int c = 0; c < width; c += at_once)
      subtract_columns<at_once>(rows - first - width, tile + width + c * ld, ld, x + first + width,
                                y + first + c, y + first + width, x + first + c);
  }
}

template <class T> void reflect_both(std::int64_t rows, T* a, std::int64_t ld, T tau, const T* v, T* work) {
  constexpr auto d = Lanes<T>::d;
  multiply_symmetric(rows, a, ld, v, work);
  T dot = 0;
  dots<1>(rows, work, 0, v, &dot);
  const auto scale = hn::Set(d, tau), half = hn::Set(d, tau * tau * dot * T(-0.5));
  for (std::int64_t i = 0; i < rows; i += Lanes<T>::count)
    hn::StoreU(hn::MulAdd(half, hn::LoadU(d, v + i), hn::Mul(scale, hn::LoadU(d, work + i))), d, work + i);
  subtract_both(rows, v, work, a, ld);
}

template <class T> ChaseFunctions<T> Functions() {
  return {multiply<T>, reflect<T>, subtract<T>, reflect_both<T>};
}
void FillChase32(ChaseFunctions<float>& functions) { functions = Functions<float>(); }
void FillChase64(ChaseFunctions<double>& functions) { functions = Functions<double>(); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(FillChase32);
HWY_EXPORT(FillChase64);
namespace {

template <class T> const ChaseFunctions<T>& functions() {
  static const ChaseFunctions<T> table = [] {
    ChaseFunctions<T> filling{};
    if constexpr (sizeof(T) == 4)
      HWY_DYNAMIC_DISPATCH(FillChase32)(filling);
    else
      HWY_DYNAMIC_DISPATCH(FillChase64)(filling);
    return filling;
  }();
  return table;
}

}  // namespace

template <class T> void chase_multiply(std::int64_t rows, std::int64_t columns, T scale, const T* a,
                                       std::int64_t ld, const T* x, T* y) {
  functions<T>().multiply(rows, columns, scale, a, ld, x, y);
}
template <class T> void chase_reflect(std::int64_t rows, std::int64_t columns, T* a, std::int64_t ld,
                                      const T* y, const T* x, T tau, const T* v) {
  functions<T>().reflect(rows, columns, a, ld, y, x, tau, v);
}
template <class T>
void chase_subtract(std::int64_t rows, std::int64_t columns, T* a, std::int64_t ld, const T* y, const T* x) {
  functions<T>().subtract(rows, columns, a, ld, y, x);
}
template <class T>
void chase_reflect_both(std::int64_t rows, T* a, std::int64_t ld, T tau, const T* v, T* work) {
  functions<T>().reflect_both(rows, a, ld, tau, v, work);
}

#define TESSERA_INSTANTIATE(T)                                                                          \
  template void chase_multiply<T>(std::int64_t, std::int64_t, T, const T*, std::int64_t, const T*, T*); \
  template void chase_reflect<T>(std::int64_t, std::int64_t, T*, std::int64_t, const T*, const T*, T,   \
                                 const T*);                                                             \
  template void chase_subtract<T>(std::int64_t, std::int64_t, T*, std::int64_t, const T*, const T*);    \
  template void chase_reflect_both<T>(std::int64_t, T*, std::int64_t, T, const T*, T*);
TESSERA_INSTANTIATE(float) TESSERA_INSTANTIATE(double)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::kernels
#endif
