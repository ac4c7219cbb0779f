// Nodes of sums and products over adjacent rows, in passes that stay in the cache: each pass joins two, four
// or eight neighbours; one pass handles the leaves of a line.
#if defined(TESSERA_KERNELS_TREE_PASSES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_KERNELS_TREE_PASSES_INL_HPP
#undef TESSERA_KERNELS_TREE_PASSES_INL_HPP
#else
#define TESSERA_KERNELS_TREE_PASSES_INL_HPP
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernels/reduce/tree_leaf.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

struct TreeSum {
  template <class T> static HWY_INLINE T of(T a, T b) { return a + b; }
  template <class V> static HWY_INLINE V of_vectors(V a, V b) { return hn::Add(a, b); }
};
struct TreeProd {
  template <class V> static HWY_INLINE V of_vectors(V a, V b) { return hn::Mul(a, b); }
  template <class T> static HWY_INLINE T of(T a, T b) { return a * b; }
  // The real part is a sum, not a difference: as in gemm_own.
  template <class R> static HWY_INLINE std::complex<R> of(std::complex<R> a, std::complex<R> b) {
    return {a.real() * b.real() + -a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
};

// TreeRows of `columns` elements, `stride` apart.
template <class T> struct TreeRows {
  const T* data;
  std::int64_t stride, columns;
  TreeRows from(std::int64_t row) const { return {data + row * stride, stride, columns}; }
};

// Pairs of rows: out is dense.
template <class Op, class T> void halve(const TreeRows<T> x, std::int64_t pairs, T* HWY_RESTRICT out) {
  if (x.columns == 1 && x.stride == 1) {
    const T* HWY_RESTRICT from = x.data;
    for (std::int64_t i = 0; i < pairs; ++i) out[i] = Op::of(from[2 * i], from[2 * i + 1]);
    return;
  }
  for (std::int64_t i = 0; i < pairs; ++i) {
    const T* HWY_RESTRICT even = x.data + 2 * i * x.stride;
    const T* HWY_RESTRICT odd = even + x.stride;
    T* HWY_RESTRICT to = out + i * x.columns;
    for (std::int64_t c = 0; c < x.columns; ++c) to[c] = Op::of(even[c], odd[c]);
  }
}

// Eight neighbours of a line at once, as three passes of halve do.
template <class Op, class T> void eighth(const T* HWY_RESTRICT x, std::int64_t eights, T* HWY_RESTRICT out) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto pairs = [&](auto low, auto high) {
    return Op::of_vectors(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low));
  };
  const auto fours = [&](const T* at) {
    return pairs(pairs(hn::LoadU(d, at), hn::LoadU(d, at + lanes)),
                 pairs(hn::LoadU(d, at + 2 * lanes), hn::LoadU(d, at + 3 * lanes)));
  };
  for (; i + lanes <= eights; i += lanes)
    hn::StoreU(pairs(fours(x + 8 * i), fours(x + 8 * i + 4 * lanes)), d, out + i);
#endif
  for (; i < eights; ++i) {
    const T* const at = x + 8 * i;
    out[i] = Op::of(Op::of(Op::of(at[0], at[1]), Op::of(at[2], at[3])),
                    Op::of(Op::of(at[4], at[5]), Op::of(at[6], at[7])));
  }
}

#if HWY_TARGET != HWY_SCALAR
// Vector v of the sums of leaves' columns, and the sums of 2, 4 and 8 neighbours in vectors from v on.
template <class Op, class T> struct LeafSums {
  static constexpr hn::ScalableTag<T> d{};
  static constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(d)),
                                vectors = std::max<std::int64_t>(leaf_columns / lanes, 1);
  using V = hn::Vec<hn::ScalableTag<T>>;

  template <std::int64_t v> static HWY_INLINE V columns(const T* HWY_RESTRICT x) {
    const T* HWY_RESTRICT const from = x + v / vectors * leaf + v % vectors * lanes;
    const V r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + leaf_columns),
            r2 = hn::LoadU(d, from + 2 * leaf_columns), r3 = hn::LoadU(d, from + 3 * leaf_columns);
    return Op::of_vectors(Op::of_vectors(r0, r1), Op::of_vectors(r2, r3));
  }
  static HWY_INLINE V pairs(V low, V high) {
    return Op::of_vectors(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low));
  }
  template <std::int64_t v> static HWY_INLINE V fours(const T* HWY_RESTRICT x) {
    const V a = columns<v>(x), b = columns<v + 1>(x), low = pairs(a, b);
    const V c = columns<v + 2>(x), e = columns<v + 3>(x), high = pairs(c, e);
    return pairs(low, high);
  }
  // Reads in the order of addresses, which hardware prefetchers recognise.
  static HWY_INLINE V eights(const T* HWY_RESTRICT x) {
    const V low = fours<0>(x), high = fours<4>(x);
    return pairs(low, high);
  }
};
#endif

// Adds the leaves of a line: two sums per leaf, equal to those of two passes over its rows and three over
// neighbours.
template <class Op, class T> void fold(const T* HWY_RESTRICT x, std::int64_t leaves, T* HWY_RESTRICT out) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  using Sums = LeafSums<Op, T>;
  if (Sums::lanes <= leaf_columns)
    for (constexpr std::int64_t at_once = 8 / Sums::vectors; i + at_once <= leaves; i += at_once)
      hn::StoreU(Sums::eights(x + i * leaf), Sums::d, out + 2 * i);
#endif
  for (; i < leaves; ++i) {
    T columns[leaf_columns];
    const T* const at = x + i * leaf;
    for (std::int64_t c = 0; c < leaf_columns; ++c)
      columns[c] = Op::of(Op::of(at[c], at[c + leaf_columns]),
                          Op::of(at[c + 2 * leaf_columns], at[c + 3 * leaf_columns]));
    for (std::int64_t count = leaf_columns / 2; count >= 2; count /= 2)
      for (std::int64_t c = 0; c < count; ++c) columns[c] = Op::of(columns[2 * c], columns[2 * c + 1]);
    out[2 * i] = columns[0], out[2 * i + 1] = columns[1];
  }
}

// Eight rows at once, as three passes of halve do.
template <class Op, class T> void eight_rows(const TreeRows<T> x, std::int64_t eights, T* HWY_RESTRICT out) {
  for (std::int64_t i = 0; i < eights; ++i) {
    const T* HWY_RESTRICT const at = x.data + 8 * i * x.stride;
    T* HWY_RESTRICT const to = out + i * x.columns;
    const auto row = [&](std::int64_t r) { return at + r * x.stride; };
    std::int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
    if constexpr (std::is_floating_point_v<T>) {
      const hn::ScalableTag<T> d;
      const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
      const auto pair = [&](std::int64_t r) {
        return Op::of_vectors(hn::LoadU(d, row(r) + c), hn::LoadU(d, row(r + 1) + c));
      };
      for (; c + lanes <= x.columns; c += lanes)
        hn::StoreU(Op::of_vectors(Op::of_vectors(pair(0), pair(2)), Op::of_vectors(pair(4), pair(6))), d,
                   to + c);
    }
#endif
    const auto pair = [&](std::int64_t r) { return Op::of(row(r)[c], row(r + 1)[c]); };
    for (; c < x.columns; ++c) to[c] = Op::of(Op::of(pair(0), pair(2)), Op::of(pair(4), pair(6)));
  }
}

// Four rows at once, as two passes of halve do.
template <class Op, class T> void quarter(const TreeRows<T> x, std::int64_t fours, T* HWY_RESTRICT out) {
  for (std::int64_t i = 0; i < fours; ++i) {
    const T *HWY_RESTRICT r0 = x.data + 4 * i * x.stride, *HWY_RESTRICT r1 = r0 + x.stride,
                          *HWY_RESTRICT r2 = r1 + x.stride, *HWY_RESTRICT r3 = r2 + x.stride;
    T* HWY_RESTRICT to = out + i * x.columns;
    for (std::int64_t c = 0; c < x.columns; ++c) to[c] = Op::of(Op::of(r0[c], r1[c]), Op::of(r2[c], r3[c]));
  }
}

template <class Op, class T> class NodeMaker {
 public:
  // Nodes of at most `rows` rows.
  NodeMaker(std::int64_t columns, std::int64_t rows)
      : cached_level_(level_in_cache(columns, rows)),
        passes_(std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(columns << cached_level_))) {}

  // The node over 2^level rows. `leaves`: level >= leaf_level, the rows lie side by side.
  void make(const TreeRows<T> x, int level, bool leaves, T* out) {
    if (level <= cached_level_) return in_cache(x, level, leaves, out);
    const int above = level - cached_level_;
    partial_.resize(static_cast<std::size_t>(x.columns * (above + 1)));
    const auto waiting = [&](int l) { return partial_.data() + x.columns * l; };
    T* const value = waiting(above);
    for (std::int64_t block = 0; block < std::int64_t{1} << above; ++block) {
      int merged = 0;
      for (auto carry = block; (carry & 1) != 0; carry >>= 1) ++merged;
      // Merges upwards; a left node waits at its level for the right one.
      T* const place = merged == above ? out : waiting(merged);
      in_cache(x.from(block << cached_level_), cached_level_, leaves, merged == 0 ? place : value);
      for (int l = 0; l < merged; ++l) merge(x.columns, waiting(l), value, l + 1 == merged ? place : value);
    }
  }

 private:
  static int level_in_cache(std::int64_t columns, std::int64_t rows) {
    const std::int64_t most = columns < leaf_columns ? line_elements : cached_elements;
    int level = 3;
    while ((columns << (level + 1)) <= most && std::int64_t{1} << level < rows) ++level;
    return level;
  }
  static void merge(std::int64_t columns, const T* left, const T* right, T* out) {
    for (std::int64_t c = 0; c < columns; ++c) out[c] = Op::of(left[c], right[c]);
  }

  void in_cache(const TreeRows<T> x, int level, bool leaves, T* out) {
    if (level == 0) {
      std::copy_n(x.data, x.columns, out);
      return;
    }
    TreeRows<T> from = x;
    T* spare = passes_.get();
    if (leaves) {
      level = fold_leaves(x, level, spare);
      from = {spare, x.columns, x.columns};
      spare += x.columns << level;
    }
    while (level > 0) {
      T* const to = is_last(from, level) ? out : spare;
      const int less = pass(from, level, to);
      spare += from.columns << less;
      from = {to, from.columns, from.columns};
      level = less;
    }
  }
  // Returns the level that is left.
  static int fold_leaves(const TreeRows<T> x, int level, T* out) {
    if constexpr (std::is_floating_point_v<T>)
      if (x.columns == 1) {
        fold<Op>(x.data, std::int64_t{1} << (level - leaf_level), out);
        return level - leaf_level + 1;
      }
    const std::int64_t row = leaf_columns * x.columns;
    quarter<Op>(TreeRows<T>{x.data, row, row}, std::int64_t{1} << (level - leaf_level), out);
    return level - 2;
  }
  static int levels_of_a_pass(const TreeRows<T>& x, int level) {
    const bool is_line = x.columns == 1 && x.stride == 1;
    if (is_line) return std::is_floating_point_v<T> && level >= 3 ? 3 : 1;
    return std::min(level, 3);
  }
  static bool is_last(const TreeRows<T>& x, int level) { return levels_of_a_pass(x, level) == level; }
  static int pass(const TreeRows<T>& x, int level, T* out) {
    const int levels = levels_of_a_pass(x, level);
    const std::int64_t rows = std::int64_t{1} << (level - levels);
    const bool is_line = x.columns == 1 && x.stride == 1;
    if (levels == 1)
      halve<Op>(x, rows, out);
    else if (levels == 2)
      quarter<Op>(x, rows, out);
    else if (!is_line)
      eight_rows<Op>(x, rows, out);
    else if constexpr (std::is_floating_point_v<T>)
      eighth<Op>(x.data, rows, out);
    return level - levels;
  }

  int cached_level_;
  std::unique_ptr<T[]> passes_;
  std::vector<T> partial_;
};

}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#endif
