// Batcher's merges of odd and even elements ("Sorting networks and their applications", 1968): the same
// exchanges for every row, so that each is a minimum and a maximum of two vectors. Runs of p elements are
// merged by exchanges at distance p, p/2, ..., 1, two distances in one pass over the cache:
//
//   distance 2h, then h, of every h-th element   a1 a2 a3 a4 a5     (a2 a4) (a3 a5), then (a1 a2) (a3 a4)
#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sort/lane_sort.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/sort/lane_sort.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// One vector of columns: its row i is at x + i * sorted_lanes<T>.
template <class T> class Columns {
  using D = hn::CappedTag<T, 64 / sizeof(T)>;
  using V = hn::Vec<D>;

 public:
  static constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(D()));

  Columns(T* x, std::int64_t n) : x_(x), n_(n) {}

  HWY_INLINE void Sort() const {
    std::int64_t i = 0;
    for (; i + 8 <= n_; i += 8) SortEight(i);
    for (std::int64_t p = 1; p < 8; p *= 2) MergeRuns(p, i);
    for (std::int64_t p = 8; p < n_; p *= 2) MergeRuns(p, 0);
  }

 private:
  HWY_INLINE V Row(std::int64_t i) const { return hn::Load(D(), x_ + i * sorted_lanes<T>); }
  HWY_INLINE void Set(std::int64_t i, V v) const { hn::Store(v, D(), x_ + i * sorted_lanes<T>); }
  static HWY_INLINE void Order(V& a, V& b) {
    const V low = hn::Min(a, b);
    b = hn::Max(a, b);
    a = low;
  }
  HWY_INLINE void OrderRows(std::int64_t i, std::int64_t j) const {
    V a = Row(i), b = Row(j);
    Order(a, b);
    Set(i, a), Set(j, b);
  }

  HWY_INLINE void SortEight(std::int64_t i) const {
    V a = Row(i), b = Row(i + 1), c = Row(i + 2), d = Row(i + 3), e = Row(i + 4), f = Row(i + 5),
      g = Row(i + 6), h = Row(i + 7);
    Order(a, b), Order(c, d), Order(e, f), Order(g, h);
    Order(a, c), Order(b, d), Order(e, g), Order(f, h);
    Order(b, c), Order(f, g);
    Order(a, e), Order(b, f), Order(c, g), Order(d, h);
    Order(c, e), Order(d, f);
    Order(b, c), Order(d, e), Order(f, g);
    Set(i, a), Set(i + 1, b), Set(i + 2, c), Set(i + 3, d), Set(i + 4, e), Set(i + 5, f), Set(i + 6, g),
        Set(i + 7, h);
  }

  // Merges each two sorted runs of p rows, from row `first` on; the last may be shorter.
  HWY_INLINE void MergeRuns(std::int64_t p, std::int64_t first) const {
    for (std::int64_t begin = first; begin + p < n_; begin += 2 * p) {
      const std::int64_t end = std::min(begin + 2 * p, n_);
      if (p == 1) {
        OrderRows(begin, begin + 1);
        continue;
      }
      BeginMerge(begin, end, p / 2);
      std::int64_t distance = p / 4;
      for (; distance > 1; distance /= 4) GoOn(begin, end, distance / 2);
      if (distance == 1) Finish(begin, end);
    }
  }

  // Distances 2h and h of the runs [begin, begin + 2h) and [begin + 2h, end).
  HWY_INLINE void BeginMerge(std::int64_t begin, std::int64_t end, std::int64_t h) const {
    for (std::int64_t i = begin; i < begin + h && i + 2 * h < end; ++i) {
      if (i + 3 * h >= end) {
        OrderRows(i, i + 2 * h);
        OrderRows(i + h, i + 2 * h);
        continue;
      }
      V a = Row(i), b = Row(i + h), c = Row(i + 2 * h), d = Row(i + 3 * h);
      Order(a, c), Order(b, d);
      Order(b, c);
      Set(i, a), Set(i + h, b), Set(i + 2 * h, c), Set(i + 3 * h, d);
    }
  }
  HWY_INLINE void GoOn(std::int64_t begin, std::int64_t end, std::int64_t h) const {
    for (std::int64_t o = 0; o < h; ++o) {
      std::int64_t i = begin + h + o;
      if (i >= end) break;
      V a = Row(i);
      for (; i + 4 * h < end; i += 4 * h) {
        V b = Row(i + h), c = Row(i + 2 * h), d = Row(i + 3 * h), e = Row(i + 4 * h);
        Order(b, d), Order(c, e);
        Order(a, b), Order(c, d);
        Set(i, a), Set(i + h, b), Set(i + 2 * h, c), Set(i + 3 * h, d);
        a = e;
      }
      Set(i, a);
      if (i + 3 * h < end) OrderRows(i + h, i + 3 * h);
      if (i + h < end) OrderRows(i, i + h);
      if (i + 3 * h < end) OrderRows(i + 2 * h, i + 3 * h);
    }
  }
  HWY_INLINE void Finish(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t i = begin + 1; i + 1 < end; i += 2) OrderRows(i, i + 1);
  }

  T* x_;
  std::int64_t n_;
};

template <class T> void SortColumns(T* x, std::int64_t n) {
  for (std::int64_t c = 0; c < sorted_lanes<T>; c += Columns<T>::lanes) Columns<T>(x + c, n).Sort();
}
void LanesOfFloats(float* x, std::int64_t n) { SortColumns(x, n); }
void LanesOfDoubles(double* x, std::int64_t n) { SortColumns(x, n); }
void LanesOfInt32(std::int32_t* x, std::int64_t n) { SortColumns(x, n); }
void LanesOfUint32(std::uint32_t* x, std::int64_t n) { SortColumns(x, n); }
void LanesOfInt64(std::int64_t* x, std::int64_t n) { SortColumns(x, n); }
void LanesOfUint64(std::uint64_t* x, std::int64_t n) { SortColumns(x, n); }

template <class T> bool HasOdd(const T* x, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  using U = hn::TFromD<decltype(du)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto minus_zero = hn::Set(du, static_cast<U>(U(1) << (8 * sizeof(U) - 1)));
  auto found = hn::Zero(du);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    const auto zero_or_nan = hn::BitCast(du, hn::Sub(v, v));  // 0 if finite
    const auto is_minus = hn::VecFromMask(du, hn::Eq(hn::BitCast(du, v), minus_zero));
    found = hn::Or(found, hn::Or(zero_or_nan, is_minus));
  }
  bool is_odd = !hn::AllTrue(du, hn::Eq(found, hn::Zero(du)));
  for (; i < n; ++i) is_odd |= x[i] - x[i] != 0 || (x[i] == 0 && std::signbit(x[i]));
  return is_odd;
}
bool OddFloats(const float* x, std::int64_t n) { return HasOdd(x, n); }
bool OddDoubles(const double* x, std::int64_t n) { return HasOdd(x, n); }

// 512 rows of 64 bytes fit the first cache. Without AVX2, vectors have two numbers of 64 bits.
std::int64_t LongestLanes() { return HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86 ? 512 : 0; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(LanesOfFloats);
HWY_EXPORT(LanesOfDoubles);
HWY_EXPORT(LanesOfInt32);
HWY_EXPORT(LanesOfUint32);
HWY_EXPORT(LanesOfInt64);
HWY_EXPORT(LanesOfUint64);
HWY_EXPORT(LongestLanes);
HWY_EXPORT(OddFloats);
HWY_EXPORT(OddDoubles);

std::int64_t longest_lane_sort() { return HWY_DYNAMIC_DISPATCH(LongestLanes)(); }
bool has_odd_floats(const float* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(OddFloats)(x, n); }
bool has_odd_floats(const double* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(OddDoubles)(x, n); }
void sort_lanes(float* x, std::int64_t n) { HWY_DYNAMIC_DISPATCH(LanesOfFloats)(x, n); }
void sort_lanes(double* x, std::int64_t n) { HWY_DYNAMIC_DISPATCH(LanesOfDoubles)(x, n); }
void sort_lanes(std::int32_t* x, std::int64_t n) { HWY_DYNAMIC_DISPATCH(LanesOfInt32)(x, n); }
void sort_lanes(std::uint32_t* x, std::int64_t n) { HWY_DYNAMIC_DISPATCH(LanesOfUint32)(x, n); }
void sort_lanes(std::int64_t* x, std::int64_t n) { HWY_DYNAMIC_DISPATCH(LanesOfInt64)(x, n); }
void sort_lanes(std::uint64_t* x, std::int64_t n) { HWY_DYNAMIC_DISPATCH(LanesOfUint64)(x, n); }
}  // namespace tessera::kernels
#endif
