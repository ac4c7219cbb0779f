// The order of additions is explicit (lanes, blocks, pairs), so that the bits of a sum do not depend on the
// vector length.
#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/reduce_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <array>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/reduce/extreme_place.hpp"
#include "kernels/reduce/reduce_rows.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using RowTable = std::array<std::array<RowReduceFn, dtype_count>, reduce_kind_count>;

// Operations for scalars and for the compiler's vectors alike.
struct Sum {
  template <class V> static HWY_INLINE void into(V& a, const V& b) { a += b; }
};
struct Prod {
  template <class V> static HWY_INLINE void into(V& a, const V& b) { a *= b; }
};
struct Max {
  template <class V> static HWY_INLINE void into(V& a, const V& b) { a = a > b ? a : b; }
};
struct Min {
  template <class V> static HWY_INLINE void into(V& a, const V& b) { a = a < b ? a : b; }
};

// A block adds at most 32 terms in each lane; blocks are added pairwise, like carries of a binary counter:
//
//   block:     0   1   2   3   4 ...
//   partial:   [0] [01] [01][2] [0123] [0123][4] ...
template <class Op, class T> class PairwiseBlocks {
 public:
  HWY_INLINE void add(T value) {
    int level = 0;
    for (std::uint64_t carry = count_++; carry & 1; carry >>= 1, ++level) {
      T merged = partial_[level];
      Op::into(merged, value);
      value = merged;
    }
    partial_[level] = value;
  }
  HWY_INLINE T result() const {
    T total{};
    bool first = true;
    for (int level = 0; level < 64; ++level) {
      if (((count_ >> level) & 1) == 0) continue;
      T merged = partial_[level];
      if (!first) Op::into(merged, total);
      total = merged;
      first = false;
    }
    return total;
  }

 private:
  T partial_[64];
  std::uint64_t count_ = 0;
};

// Lanes of a block's accumulator; loops over them become a few vector instructions.
template <class T> inline constexpr int lanes_of = 512 / static_cast<int>(sizeof(T));

// The terms of a row: its elements, or their squares.
struct Itself {
  template <class T> static HWY_INLINE T of(T x) { return x; }
};
struct Squared {
  template <class T> static HWY_INLINE T of(T x) { return x * x; }
};

// n >= lanes
template <class Op, class Of, class T> T reduce_block(const T* x, std::int64_t n) {
  constexpr int lanes = lanes_of<T>;
  T total[lanes];
  for (int l = 0; l < lanes; ++l) total[l] = Of::of(x[l]);
  std::int64_t i = lanes;
  for (; i + lanes <= n; i += lanes)
    for (int l = 0; l < lanes; ++l) Op::into(total[l], Of::of(x[i + l]));
  for (int l = 0; l < static_cast<int>(n - i); ++l) Op::into(total[l], Of::of(x[i + l]));
  for (int width = lanes / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) Op::into(total[l], total[l + width]);
  return total[0];
}

template <class Op, class Of, class T> T reduce_row(const T* x, std::int64_t n) {
  constexpr int lanes = lanes_of<T>;
  constexpr std::int64_t block = lanes * 16;
  if (n < lanes) {
    T total = Of::of(x[0]);
    for (std::int64_t i = 1; i < n; ++i) Op::into(total, Of::of(x[i]));
    return total;
  }
  if (n < 2 * block) return reduce_block<Op, Of>(x, n);
  PairwiseBlocks<Op, T> blocks;
  std::int64_t i = 0;
  for (; i + 2 * block <= n; i += block) blocks.add(reduce_block<Op, Of>(x + i, block));
  blocks.add(reduce_block<Op, Of>(x + i, n - i));
  return blocks.result();
}

template <class Op, class T, class Of = Itself>
void reduce_rows(const void* x, std::int64_t rows, std::int64_t n, void* out) {
  const T* row = static_cast<const T*>(x);
  for (std::int64_t r = 0; r < rows; ++r, row += n) static_cast<T*>(out)[r] = reduce_row<Op, Of>(row, n);
}
// A comparison with NaN is false, so NaN never replaces an element.
struct KeepMax {
  template <class V> static HWY_INLINE V of(V kept, V v) { return hn::IfThenElse(hn::Gt(v, kept), v, kept); }
};
struct KeepMin {
  template <class V> static HWY_INLINE V of(V kept, V v) { return hn::IfThenElse(hn::Lt(v, kept), v, kept); }
};
template <class Keep, class T> T extreme_number(const T* x, std::int64_t n, T start) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto a = hn::Set(d, start), b = a, c = a, e = a;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = Keep::of(a, hn::LoadU(d, x + i)), b = Keep::of(b, hn::LoadU(d, x + i + lanes));
    c = Keep::of(c, hn::LoadU(d, x + i + 2 * lanes)), e = Keep::of(e, hn::LoadU(d, x + i + 3 * lanes));
  }
  HWY_ALIGN T rest[hn::MaxLanes(hn::ScalableTag<T>())];
  hn::Store(Keep::of(Keep::of(a, b), Keep::of(c, e)), d, rest);
  auto last = hn::Set(one, start);
  for (std::int64_t l = 0; l < lanes; ++l) last = Keep::of(last, hn::LoadU(one, rest + l));
  for (; i < n; ++i) last = Keep::of(last, hn::LoadU(one, x + i));
  return hn::GetLane(last);
}
template <class T> void extreme_number_of(bool max, const void* x, std::int64_t n, void* out) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const T* const row = static_cast<const T*>(x);
  *static_cast<T*>(out) =
      max ? extreme_number<KeepMax>(row, n, -infinity) : extreme_number<KeepMin>(row, n, infinity);
}
void ExtremeNumberOfFloats(bool max, const void* x, std::int64_t n, void* out) {
  extreme_number_of<float>(max, x, n, out);
}
void ExtremeNumberOfDoubles(bool max, const void* x, std::int64_t n, void* out) {
  extreme_number_of<double>(max, x, n, out);
}
void SquaresOfFloats(const void* x, std::int64_t rows, std::int64_t n, void* out) {
  reduce_rows<Sum, float, Squared>(x, rows, n, out);
}
void SquaresOfDoubles(const void* x, std::int64_t rows, std::int64_t n, void* out) {
  reduce_rows<Sum, double, Squared>(x, rows, n, out);
}

// Complex reductions but sums: sequential in pieces, which are merged pairwise.
template <class C> HWY_INLINE bool has_nan(const C& a) {
  return a.real() != a.real() || a.imag() != a.imag();
}
template <class C> HWY_INLINE bool less(const C& a, const C& b) {
  return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
}
struct ComplexProd {
  template <class C> static HWY_INLINE void into(C& a, const C& b) {
    a = C(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  }
};
struct ComplexMax {
  template <class C> static HWY_INLINE void into(C& a, const C& b) {
    a = has_nan(a) || (!has_nan(b) && less(b, a)) ? a : b;
  }
};
struct ComplexMin {
  template <class C> static HWY_INLINE void into(C& a, const C& b) {
    a = has_nan(a) || (!has_nan(b) && less(a, b)) ? a : b;
  }
};
template <class Op, class C> C reduce_complex_block(const C* x, std::int64_t n) {
  constexpr std::int64_t piece = 64;
  PairwiseBlocks<Op, C> pieces;
  for (std::int64_t i = 0; i < n; i += piece) {
    C total = x[i];
    for (std::int64_t j = i + 1; j < (i + piece < n ? i + piece : n); ++j) Op::into(total, x[j]);
    pieces.add(total);
  }
  return pieces.result();
}
template <class Op, class C>
void reduce_complex_rows(const void* x, std::int64_t rows, std::int64_t n, void* out) {
  constexpr std::int64_t block = 8192 / sizeof(C);
  const C* row = static_cast<const C*>(x);
  for (std::int64_t r = 0; r < rows; ++r, row += n) {
    PairwiseBlocks<Op, C> blocks;
    std::int64_t i = 0;
    for (; i + 2 * block <= n; i += block) blocks.add(reduce_complex_block<Op>(row + i, block));
    blocks.add(reduce_complex_block<Op>(row + i, n - i));
    static_cast<C*>(out)[r] = blocks.result();
  }
}

// Complex sums: real and imaginary parts lie side by side in the lanes of a sum of reals.
template <class R> struct PairSum {
  R real, imaginary;
  HWY_INLINE PairSum& operator+=(const PairSum& other) {
    real += other.real, imaginary += other.imaginary;
    return *this;
  }
};
#if HWY_TARGET != HWY_SCALAR  // which has no pairs
// Every lane's neighbour in its pair.
template <class D, class V> HWY_INLINE V Exchanged(D d, V v) {
  (void)d;
  if constexpr (sizeof(hn::TFromD<D>) == 4)
    return hn::Shuffle2301(v);
  else
    return hn::Shuffle01(v);
}
#endif
// The sum of conj(a) b over n complex numbers given as reals: real parts are sums of all products in place,
// imaginary parts the even products with exchanged neighbours minus the odd ones.
template <class R> PairSum<R> conjugate_products(const R* a, const R* b, int n) {
  const hn::ScalableTag<R> d;
  constexpr int lanes = 256 / static_cast<int>(sizeof(R));  // the same bits on every instruction set
  constexpr auto width = static_cast<int>(hn::MaxLanes(hn::ScalableTag<R>()));
  HWY_ALIGN R straight[lanes] = {}, crossed[lanes] = {};
  int i = 0;
  if constexpr (width > 1 && lanes % width == 0) {
    hn::Vec<decltype(d)> s[lanes / width], c[lanes / width];
    for (int k = 0; k < lanes / width; ++k) s[k] = hn::Zero(d), c[k] = hn::Zero(d);
    for (; i + lanes <= 2 * n; i += lanes)
      for (int k = 0; k < lanes / width; ++k) {
        const auto x = hn::LoadU(d, a + i + k * width), y = hn::LoadU(d, b + i + k * width);
        s[k] = hn::Add(s[k], hn::Mul(x, y));
        c[k] = hn::Add(c[k], hn::Mul(x, Exchanged(d, y)));
      }
    for (int k = 0; k < lanes / width; ++k)
      hn::Store(s[k], d, straight + k * width), hn::Store(c[k], d, crossed + k * width);
  }
  for (int l = 0; i < 2 * n; ++i, l = (l + 1) % lanes)
    straight[l] += a[i] * b[i], crossed[l] += a[i] * b[i ^ 1];
  for (int half = lanes / 2; half > 1; half /= 2)
    for (int l = 0; l < half; ++l) straight[l] += straight[l + half], crossed[l] += crossed[l + half];
  return {straight[0] + straight[1], crossed[0] - crossed[1]};
}
template <class R> void sum_conjugate_products(const void* a, const void* b, std::int64_t n, void* out) {
  constexpr int block = 512;  // complex numbers: 16 or 32 terms in each lane
  const R *x = static_cast<const R*>(a), *y = static_cast<const R*>(b);
  PairwiseBlocks<Sum, PairSum<R>> blocks;
  std::int64_t i = 0;
  for (; i + 2 * block <= n; i += block) blocks.add(conjugate_products(x + 2 * i, y + 2 * i, block));
  blocks.add(conjugate_products(x + 2 * i, y + 2 * i, static_cast<int>(n - i)));
  const auto total = blocks.result();
  static_cast<R*>(out)[0] = total.real, static_cast<R*>(out)[1] = total.imaginary;
}
void ConjugateProductsOfFloats(const void* a, const void* b, std::int64_t n, void* out) {
  sum_conjugate_products<float>(a, b, n, out);
}
void ConjugateProductsOfDoubles(const void* a, const void* b, std::int64_t n, void* out) {
  sum_conjugate_products<double>(a, b, n, out);
}

// n >= lanes reals
template <class R> PairSum<R> sum_pairs(const R* x, std::int64_t n) {
  constexpr int lanes = lanes_of<R>;
  R total[lanes];
  for (int l = 0; l < lanes; ++l) total[l] = x[l];
  std::int64_t i = lanes;
  for (; i + lanes <= n; i += lanes)
    for (int l = 0; l < lanes; ++l) total[l] += x[i + l];
  for (int l = 0; l < static_cast<int>(n - i); ++l) total[l] += x[i + l];
  for (int width = lanes / 2; width > 1; width /= 2)
    for (int l = 0; l < width; ++l) total[l] += total[l + width];
  return {total[0], total[1]};
}
template <class R> PairSum<R> sum_row_of_pairs(const R* x, std::int64_t n) {
  constexpr std::int64_t lanes = lanes_of<R>, block = lanes * 16;
  if (n < lanes) {
    PairSum<R> total{x[0], x[1]};
    for (std::int64_t i = 2; i < n; i += 2) total += PairSum<R>{x[i], x[i + 1]};
    return total;
  }
  PairwiseBlocks<Sum, PairSum<R>> blocks;
  std::int64_t i = 0;
  for (; i + 2 * block <= n; i += block) blocks.add(sum_pairs(x + i, block));
  blocks.add(sum_pairs(x + i, n - i));
  return blocks.result();
}
template <class R> void sum_complex_rows(const void* x, std::int64_t rows, std::int64_t n, void* out) {
  const R* row = static_cast<const R*>(x);
  R* to = static_cast<R*>(out);
  for (std::int64_t r = 0; r < rows; ++r, row += 2 * n, to += 2) {
    const auto sum = sum_row_of_pairs(row, 2 * n);
    to[0] = sum.real, to[1] = sum.imaginary;
  }
}

// Bytes are counted in byte-wide lanes for as long as none can overflow.
inline std::int64_t count_bytes(const std::uint8_t* x, std::int64_t n) {
  constexpr std::int64_t lanes = 256, at_once = 255 * lanes;
  std::int64_t total = 0, i = 0;
  while (i + lanes <= n) {
    std::uint8_t counts[lanes] = {};
    for (const std::int64_t stop = i + at_once < n ? i + at_once : n; i + lanes <= stop; i += lanes)
      for (std::int64_t l = 0; l < lanes; ++l) counts[l] = std::uint8_t(counts[l] + (x[i + l] != 0));
    std::uint32_t sum = 0;
    for (std::int64_t l = 0; l < lanes; ++l) sum += counts[l];
    total += sum;
  }
  for (; i < n; ++i) total += x[i] != 0;
  return total;
}

template <class T> void count_rows(const void* x, std::int64_t rows, std::int64_t n, void* out) {
  const T* row = static_cast<const T*>(x);
  for (std::int64_t r = 0; r < rows; ++r, row += n) {
    if constexpr (sizeof(T) == 1) {
      static_cast<std::int64_t*>(out)[r] = count_bytes(row, n);
      continue;
    }
    std::int64_t total = 0;
    for (std::int64_t start = 0; start < n; start += 4096) {
      const std::int64_t stop = start + 4096 < n ? start + 4096 : n;
      std::uint32_t nonzero = 0;
      for (std::int64_t i = start; i < stop; ++i) nonzero += row[i] != T(0);
      total += nonzero;
    }
    static_cast<std::int64_t*>(out)[r] = total;
  }
}

// Counts a strip of columns in numbers as wide as an element, for as many rows as cannot overflow them.
template <class T> void count_columns(const void* x, std::int64_t step, std::int64_t rows,
                                      std::int64_t columns, std::int64_t* counts) {
  using Count = hwy::UnsignedFromSize<sizeof(T)>;
  constexpr std::int64_t strip = 2048, at_once = sizeof(T) == 1 ? 255 : 65535;
  for (std::int64_t j = 0; j < columns; j += strip) {
    const std::int64_t width = j + strip < columns ? strip : columns - j;
    for (std::int64_t first = 0; first < rows; first += at_once) {
      const std::int64_t last = first + at_once < rows ? first + at_once : rows;
      Count some[strip] = {};
      for (std::int64_t r = first; r < last; ++r) {
        const T* row = static_cast<const T*>(x) + r * step + j;
        for (std::int64_t c = 0; c < width; ++c) some[c] = Count(some[c] + Count(row[c] != T(0)));
      }
      for (std::int64_t c = 0; c < width; ++c)
        counts[j + c] = (first == 0 ? 0 : counts[j + c]) + static_cast<std::int64_t>(some[c]);
    }
  }
}
ColumnCountFn FindColumnCount(Dtype dtype) {
  if (dtype == float32) return count_columns<float>;
  if (dtype == float64) return count_columns<double>;
  switch (itemsize(dtype)) {
    case 1: return count_columns<std::uint8_t>;
    case 2: return count_columns<std::uint16_t>;
    case 4: return count_columns<std::uint32_t>;
    default: return count_columns<std::uint64_t>;
  }
}

constexpr int index_of(ReduceKind kind) { return static_cast<int>(kind); }

template <class... T> void add_counts(RowTable& table) {
  ((table[index_of(ReduceKind::count_nonzero)][dtype_of<T>().code] = count_rows<T>), ...);
}
template <class Op, class... T> void add_rows(RowTable& table, ReduceKind kind) {
  ((table[index_of(kind)][dtype_of<T>().code] = reduce_rows<Op, T, Itself>), ...);
}
template <class Op, class... T> void add_complex_rows(RowTable& table, ReduceKind kind) {
  ((table[index_of(kind)][dtype_of<T>().code] = reduce_complex_rows<Op, T>), ...);
}
// Wrapping sums and products are independent of the sign.
template <class Op> void add_signless(RowTable& table, ReduceKind kind) {
  add_rows<Op, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>(table, kind);
  auto& row = table[index_of(kind)];
  for (int code = int8.code; code <= int64.code; ++code) row[code] = row[code + 4];
}

void FillRowTable(RowTable& table) {
  using i8 = std::int8_t;
  using i16 = std::int16_t;
  using u8 = std::uint8_t;
  using u16 = std::uint16_t;
  using u32 = std::uint32_t;
  using u64 = std::uint64_t;
  using c64 = std::complex<float>;
  using c128 = std::complex<double>;
  add_signless<Sum>(table, ReduceKind::sum);
  add_signless<Prod>(table, ReduceKind::prod);
  add_rows<Sum, float, double>(table, ReduceKind::sum);
  add_rows<Prod, float, double>(table, ReduceKind::prod);
  add_rows<Max, i8, i16, u8, u16, u32, u64>(table, ReduceKind::max);
  add_rows<Min, i8, i16, u8, u16, u32, u64>(table, ReduceKind::min);
  table[index_of(ReduceKind::sum)][complex64.code] = sum_complex_rows<float>;
  table[index_of(ReduceKind::sum)][complex128.code] = sum_complex_rows<double>;
  add_complex_rows<ComplexProd, c64, c128>(table, ReduceKind::prod);
  add_complex_rows<ComplexMax, c64, c128>(table, ReduceKind::max);
  add_complex_rows<ComplexMin, c64, c128>(table, ReduceKind::min);
  add_counts<u8, u16, u32, u64, float, double, c64, c128>(table);
  const auto code = [](Dtype d) { return static_cast<std::size_t>(d.code); };
  auto& counts = table[index_of(ReduceKind::count_nonzero)];
  for (int signed_code = int8.code; signed_code <= int64.code; ++signed_code)
    counts[signed_code] = counts[signed_code + 4];
  counts[code(bool_)] = counts[code(uint8)];
  const auto bool_as = [&](ReduceKind kind, ReduceKind of_bytes) {
    table[index_of(kind)][code(bool_)] = table[index_of(of_bytes)][code(uint8)];
  };
  bool_as(ReduceKind::sum, ReduceKind::max);
  bool_as(ReduceKind::max, ReduceKind::max);
  bool_as(ReduceKind::prod, ReduceKind::min);
  bool_as(ReduceKind::min, ReduceKind::min);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(FillRowTable);
HWY_EXPORT(FindColumnCount);
HWY_EXPORT(SquaresOfFloats);
HWY_EXPORT(ConjugateProductsOfFloats);
HWY_EXPORT(ConjugateProductsOfDoubles);
HWY_EXPORT(ExtremeNumberOfFloats);
HWY_EXPORT(ExtremeNumberOfDoubles);
HWY_EXPORT(SquaresOfDoubles);

void sum_squares_of_rows(Dtype dtype, const void* x, std::int64_t rows, std::int64_t n, void* out) {
  if (dtype == float32) return HWY_DYNAMIC_DISPATCH(SquaresOfFloats)(x, rows, n, out);
  HWY_DYNAMIC_DISPATCH(SquaresOfDoubles)(x, rows, n, out);
}

ColumnCountFn find_column_count(Dtype dtype) {
  return (is_floating(dtype) && itemsize(dtype) < 4) || is_complex(dtype)
             ? nullptr
             : HWY_DYNAMIC_DISPATCH(FindColumnCount)(dtype);
}

void sum_conjugate_products(Dtype dtype, const void* a, const void* b, std::int64_t n, void* out) {
  return dtype == complex64 ? HWY_DYNAMIC_DISPATCH(ConjugateProductsOfFloats)(a, b, n, out)
                            : HWY_DYNAMIC_DISPATCH(ConjugateProductsOfDoubles)(a, b, n, out);
}
void extreme_number_of_row(bool max, Dtype dtype, const void* x, std::int64_t n, void* out) {
  return dtype == float32 ? HWY_DYNAMIC_DISPATCH(ExtremeNumberOfFloats)(max, x, n, out)
                          : HWY_DYNAMIC_DISPATCH(ExtremeNumberOfDoubles)(max, x, n, out);
}

RowReduceFn find_row_reduce(ReduceKind kind, Dtype dtype) {
  static const auto table = [] {
    std::array<std::array<RowReduceFn, dtype_count>, reduce_kind_count> filling{};
    HWY_DYNAMIC_DISPATCH(FillRowTable)(filling);
    for (const Dtype ordered : {float32, float64, int32, int64})
      for (const auto kind : {ReduceKind::max, ReduceKind::min})
        filling[static_cast<std::size_t>(kind)][ordered.code] =
            find_extreme_of_rows(kind == ReduceKind::max, ordered);
    return filling;
  }();
  return table[static_cast<int>(kind)][dtype.code];
}
}  // namespace tessera::kernels
#endif
