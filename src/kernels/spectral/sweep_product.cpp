#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/spectral/sweep_product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/dense/product_tile-inl.hpp"
#include "kernels/spectral/sweep_product.hpp"

#ifndef TESSERA_SWEEP_PRODUCT_TYPES
#define TESSERA_SWEEP_PRODUCT_TYPES
namespace tessera::kernels {
namespace {

// V^H and V T in strips of rows.
struct SweepShape {
  std::int64_t rows, columns, width;
};
template <class T> struct SweepFunctions {
  std::int64_t strip_rows;
  void (*pack)(const SweepShape&, const T* v, const T* vt, T* packed);
  void (*apply)(const SweepShape&, const T* packed, std::int64_t columns, T* z, std::int64_t ld);
};

}  // namespace
}  // namespace tessera::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

// The depths from `first` to `last` at which a strip's three vectors of rows have elements that are not zero.
struct Stairs {
  std::int64_t first[3], last[3];
};
template <class First, class Last>
HWY_INLINE Stairs stairs(std::int64_t depth, First&& first_of, Last&& last_of) {
  Stairs s{};
  for (int v = 0; v < 3; ++v)
    s.first[v] = std::min(first_of(v), depth), s.last[v] = std::min(last_of(v), depth);
  if (s.first[2] <= s.last[0]) return s;
  return {{s.first[0], s.first[0], s.first[0]}, {s.last[2], s.last[2], s.last[2]}};
}

template <class T> using Vector = hn::Vec<hn::ScalableTag<T>>;

// sum += a b for the vectors from First to Last - 1 of a strip.
template <int First, int Last, int W, class T>
HWY_INLINE void accumulate(std::int64_t from, std::int64_t to, const T* HWY_RESTRICT a,
                           const T* HWY_RESTRICT b, std::int64_t ldb, Vector<T> (&sum)[W][3]) {
  using Shape = TileShape<T>;
  constexpr auto d = Shape::d;
  for (std::int64_t l = from; l < to; ++l) {
    Vector<T> left[3];
#pragma GCC unroll 3
    for (int v = First; v < Last; ++v) left[v] = hn::Load(d, a + l * Shape::rows + v * Shape::lanes);
#pragma GCC unroll 8
    for (int j = 0; j < W; ++j) {
      const auto right = hn::Set(d, b[l + j * ldb]);
#pragma GCC unroll 3
      for (int v = First; v < Last; ++v) sum[j][v] = hn::MulAdd(left[v], right, sum[j][v]);
    }
  }
}

// One strip times W columns; store(sum, vector, column) takes the result.
template <int W, class T, class Store>
HWY_INLINE void multiply_stairs(const Stairs& s, const T* HWY_RESTRICT a, const T* HWY_RESTRICT b,
                                std::int64_t ldb, Store&& store) {
  Vector<T> sum[W][3];
#pragma GCC unroll 8
  for (int j = 0; j < W; ++j)
#pragma GCC unroll 3
    for (int v = 0; v < 3; ++v) sum[j][v] = hn::Zero(TileShape<T>::d);
  accumulate<0, 1>(s.first[0], s.first[1], a, b, ldb, sum);
  accumulate<0, 2>(s.first[1], s.first[2], a, b, ldb, sum);
  accumulate<0, 3>(s.first[2], s.last[0], a, b, ldb, sum);
  accumulate<1, 3>(s.last[0], s.last[1], a, b, ldb, sum);
  accumulate<2, 3>(s.last[1], s.last[2], a, b, ldb, sum);
#pragma GCC unroll 8
  for (int j = 0; j < W; ++j)
#pragma GCC unroll 3
    for (int v = 0; v < 3; ++v) store(sum[j][v], v, j);
}

template <class T> void pack(const SweepShape& shape, const T* v, const T* vt, T* packed) {
  constexpr std::int64_t height = TileShape<T>::rows;
  pack_rows<T>(shape.columns, shape.rows, {v, shape.rows, 1}, packed);
  packed += (shape.columns + height - 1) / height * height * shape.rows;
  pack_rows<T>(shape.rows, shape.columns, {vt, 1, shape.rows}, packed);
}

// W columns of z. projected = V^H z, in columns of `ld_projected`.
template <int W, class T> HWY_INLINE void apply_columns(const SweepShape& shape, const T* packed, T* z,
                                                        std::int64_t ld, T* HWY_RESTRICT projected,
                                                        std::int64_t ld_projected) {
  constexpr auto d = TileShape<T>::d;
  constexpr std::int64_t height = TileShape<T>::rows, lanes = TileShape<T>::lanes;
  for (std::int64_t row = 0; row < shape.columns; row += height, packed += height * shape.rows) {
    const auto s = stairs(
        shape.rows, [&](int v) { return row + v * lanes; },
        [&](int v) { return row + (v + 1) * lanes - 1 + shape.width; });
    multiply_stairs<W>(s, packed, z, ld, [&](auto sum, int v, int j) {
      hn::Store(sum, d, projected + row + v * lanes + j * ld_projected);
    });
  }
  for (std::int64_t row = 0; row < shape.rows; row += height, packed += height * shape.columns) {
    const auto s = stairs(
        shape.columns, [&](int v) { return std::max<std::int64_t>(row + v * lanes - shape.width + 1, 0); },
        [&](int) { return shape.columns; });
    const std::int64_t rows = shape.rows - row;
    if (rows >= height) {
      multiply_stairs<W>(s, packed, projected, ld_projected, [&](auto sum, int v, int j) {
        T* const place = z + row + v * lanes + j * ld;
        hn::StoreU(hn::Sub(hn::LoadU(d, place), sum), d, place);
      });
      continue;
    }
    multiply_stairs<W>(s, packed, projected, ld_projected, [&](auto sum, int v, int j) {
      T* const place = z + row + v * lanes + j * ld;
      const std::int64_t left = std::clamp<std::int64_t>(rows - v * lanes, 0, lanes);
      const auto inside = hn::FirstN(d, static_cast<std::size_t>(left));
      hn::BlendedStore(hn::Sub(hn::MaskedLoad(inside, d, place), sum), inside, d, place);
    });
  }
}

template <class T>
void apply(const SweepShape& shape, const T* packed, std::int64_t columns, T* z, std::int64_t ld) {
  constexpr std::int64_t height = TileShape<T>::rows, width = TileShape<T>::columns;
  const std::int64_t ld_projected = (shape.columns + height - 1) / height * height;
  Buffer memory = Buffer::allocate(static_cast<std::size_t>(ld_projected * width) * sizeof(T) + 64);
  T* const projected = reinterpret_cast<T*>(memory.data());
  std::int64_t c = 0;
  for (; c + width <= columns; c += width)
    apply_columns<static_cast<int>(width)>(shape, packed, z + c * ld, ld, projected, ld_projected);
  for (; c < columns; ++c) apply_columns<1>(shape, packed, z + c * ld, ld, projected, ld_projected);
}

template <class T> SweepFunctions<T> Functions() { return {TileShape<T>::rows, pack<T>, apply<T>}; }
void FillSweep32(SweepFunctions<float>& functions) { functions = Functions<float>(); }
void FillSweep64(SweepFunctions<double>& functions) { functions = Functions<double>(); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/factor/lapack_calls.hpp"
namespace tessera::kernels {
HWY_EXPORT(FillSweep32);
HWY_EXPORT(FillSweep64);
namespace {

template <class T> const SweepFunctions<T>& functions() {
  static const SweepFunctions<T> table = [] {
    SweepFunctions<T> filling{};
    if constexpr (sizeof(T) == 4)
      HWY_DYNAMIC_DISPATCH(FillSweep32)(filling);
    else
      HWY_DYNAMIC_DISPATCH(FillSweep64)(filling);
    return filling;
  }();
  return table;
}

}  // namespace

template <class T> void SweepProduct<T>::pack(std::int64_t rows, std::int64_t columns, std::int64_t width,
                                              const T* v, const T* vt) {
  rows_ = rows, columns_ = columns, width_ = width;
  if constexpr (complex_type<T>) {
    v_adjoint_.pack(columns, rows, {v, rows, 1, true});
    vt_.pack(rows, columns, {vt, 1, rows});
  } else {
    const auto& f = functions<T>();
    const auto whole = [&](std::int64_t n) { return (n + f.strip_rows - 1) / f.strip_rows * f.strip_rows; };
    packed_ = Buffer::allocate(
        static_cast<std::size_t>(whole(columns) * rows + whole(rows) * columns) * sizeof(T) + 64);
    f.pack({rows, columns, width}, v, vt, reinterpret_cast<T*>(packed_.data()));
  }
}

template <class T> void SweepProduct<T>::apply(std::int64_t columns, T* z, std::int64_t ld) const {
  if constexpr (complex_type<T>) {
    std::vector<T> projected(columns_ * columns);
    v_adjoint_.product(columns, {z, 1, ld}, projected.data(), columns_);
    vt_.subtract_product(0, rows_, columns, {projected.data(), 1, columns_}, z, ld);
  } else {
    functions<T>().apply({rows_, columns_, width_}, reinterpret_cast<const T*>(packed_.data()), columns, z,
                         ld);
  }
}

template class SweepProduct<float>;
template class SweepProduct<double>;
template class SweepProduct<c32>;
template class SweepProduct<c64>;

}  // namespace tessera::kernels
#endif
