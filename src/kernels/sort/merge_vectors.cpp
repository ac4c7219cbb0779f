// A vector of pending elements is merged with the next vector of the run whose next element is smaller: the
// smaller half of both is final, because everything unread is larger, and the larger half is pending.
#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sort/merge_vectors.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "kernels/sort/merge_vectors.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
// Lanes i and i ^ partners change places so that the one without bit `upper` has the smaller element.
template <std::size_t partners, std::size_t upper, class D, class V> HWY_INLINE V Exchange(D d, V v) {
  using T = hn::TFromD<D>;
  const hn::RebindToSigned<D> di;
  using I = hn::TFromD<decltype(di)>;
  constexpr std::size_t lanes = hn::MaxLanes(D());
  HWY_ALIGN I other[lanes], is_upper[lanes];
  for (std::size_t i = 0; i < lanes; ++i)
    other[i] = static_cast<I>(i ^ partners), is_upper[i] = (i & upper) != 0 ? I(-1) : I(0);
  const auto partner = hn::TableLookupLanes(v, hn::SetTableIndices(d, other));
  const auto takes_larger = hn::MaskFromVec(hn::BitCast(d, hn::Load(di, is_upper)));
  static_assert(sizeof(T) == sizeof(I));
  return hn::IfThenElse(takes_larger, hn::Max(v, partner), hn::Min(v, partner));
}
template <std::size_t distance, class D, class V> HWY_INLINE V Halve(D d, V v) {
  return Exchange<distance, distance>(d, v);
}
// Sorts a bitonic vector.
template <class D, class V> HWY_INLINE V SortBitonic(D d, V v) {
  constexpr std::size_t lanes = hn::MaxLanes(D());
  if constexpr (lanes >= 16) v = Halve<8>(d, v);
  if constexpr (lanes >= 8) v = Halve<4>(d, v);
  v = Halve<2>(d, v);
  return Halve<1>(d, v);
}

// Sorts any vector: pairs of sorted parts, the second read backwards, are bitonic.
template <class D, class V> HWY_INLINE V SortVector(D d, V v) {
  constexpr std::size_t lanes = hn::MaxLanes(D());
  v = Exchange<1, 1>(d, v);
  v = Halve<1>(d, Exchange<3, 2>(d, v));
  if constexpr (lanes >= 8) v = Halve<1>(d, Halve<2>(d, Exchange<7, 4>(d, v)));
  if constexpr (lanes >= 16) v = Halve<1>(d, Halve<2>(d, Halve<4>(d, Exchange<15, 8>(d, v))));
  return v;
}

// The next vector of the run whose next element is smaller; both have one.
template <class D, class T> HWY_INLINE hn::Vec<D> Taken(D d, RunsToMerge<T>& runs) {
  constexpr auto lanes = static_cast<std::ptrdiff_t>(hn::MaxLanes(D()));
  const bool from_right = *runs.right < *runs.left;
  const T* const at = from_right ? runs.right : runs.left;
  runs.right += from_right ? lanes : 0;
  runs.left += from_right ? 0 : lanes;
  return hn::LoadU(d, at);
}
template <class T> HWY_INLINE std::ptrdiff_t Vectors(const RunsToMerge<T>& runs) {
  constexpr auto lanes = static_cast<std::ptrdiff_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  return std::min(runs.left_end - runs.left, runs.right_end - runs.right) / lanes;
}
template <class D, class T> HWY_INLINE void Step(D d, RunsToMerge<T>& runs, hn::Vec<D>& pending) {
  const auto next = hn::Reverse(d, Taken(d, runs));
  const auto low = hn::Min(pending, next);
  pending = SortBitonic(d, hn::Max(pending, next));
  hn::StoreU(SortBitonic(d, low), d, runs.out);
  runs.out += hn::MaxLanes(D());
}

// Pending elements and the rest of both runs, one of which is shorter than a vector.
template <class D, class T> void Finish(D d, RunsToMerge<T>& runs, hn::Vec<D> pending) {
  constexpr std::size_t lanes = hn::MaxLanes(D());
  HWY_ALIGN T first[lanes], both[2 * lanes];
  hn::Store(pending, d, first);
  const bool is_left_short = runs.left_end - runs.left < static_cast<std::ptrdiff_t>(lanes);
  const T* const rest = is_left_short ? runs.left : runs.right;
  const T* const rest_end = is_left_short ? runs.left_end : runs.right_end;
  const T* const both_end = std::merge(first, first + lanes, rest, rest_end, both);
  std::merge(static_cast<const T*>(both), both_end, is_left_short ? runs.right : runs.left,
             is_left_short ? runs.right_end : runs.left_end, runs.out);
}

// Four pairs of runs advance together: the steps of one depend on each other.
template <class T> void Merge(std::span<RunsToMerge<T>, 4> runs) {
  const hn::ScalableTag<T> d;
  if (std::any_of(runs.begin(), runs.end(), [](const auto& r) { return Vectors(r) == 0; })) {
    for (const auto& r : runs) std::merge(r.left, r.left_end, r.right, r.right_end, r.out);
    return;
  }
  auto p = Taken(d, runs[0]), q = Taken(d, runs[1]), r = Taken(d, runs[2]), s = Taken(d, runs[3]);
  for (;;) {
    auto steps =
        std::min(std::min(Vectors(runs[0]), Vectors(runs[1])), std::min(Vectors(runs[2]), Vectors(runs[3])));
    if (steps == 0) break;
    for (; steps > 0; --steps) {
      Step(d, runs[0], p);
      Step(d, runs[1], q);
      Step(d, runs[2], r);
      Step(d, runs[3], s);
    }
  }
  const auto finish = [&](RunsToMerge<T>& one, auto pending) HWY_ATTR {
    while (Vectors(one) > 0) Step(d, one, pending);
    Finish(d, one, pending);
  };
  finish(runs[0], p), finish(runs[1], q), finish(runs[2], r), finish(runs[3], s);
}
// Merges two runs of whole vectors, neither of them empty.
template <class T> void MergeWhole(RunsToMerge<T> runs) {
  const hn::ScalableTag<T> d;
  auto pending = Taken(d, runs);
  while (runs.left != runs.left_end && runs.right != runs.right_end) Step(d, runs, pending);
  const T* rest = runs.left != runs.left_end ? runs.left : runs.right;
  const T* const rest_end = runs.left != runs.left_end ? runs.left_end : runs.right_end;
  for (; rest != rest_end; rest += hn::MaxLanes(d)) {
    const auto next = hn::Reverse(d, hn::LoadU(d, rest)), low = hn::Min(pending, next);
    pending = SortBitonic(d, hn::Max(pending, next));
    hn::StoreU(SortBitonic(d, low), d, runs.out);
    runs.out += hn::MaxLanes(d);
  }
  hn::StoreU(pending, d, runs.out);
}
template <class T> void SortShort(T* x, T* spare, std::int64_t n) {
  const hn::ScalableTag<T> d;
  constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  for (std::int64_t i = 0; i < n; i += lanes) hn::StoreU(SortVector(d, hn::LoadU(d, x + i)), d, x + i);
  T *from = x, *to = spare;
  for (std::int64_t width = lanes; width < n; width *= 2, std::swap(from, to))
    for (std::int64_t i = 0; i < n; i += 2 * width) {
      const std::int64_t middle = std::min(i + width, n), end = std::min(i + 2 * width, n);
      if (middle == end)
        std::copy(from + i, from + end, to + i);
      else
        MergeWhole(RunsToMerge<T>{from + i, from + middle, from + middle, from + end, to + i});
    }
  if (from != x) std::copy_n(from, n, x);
}
// Beyond, passes by digits are quicker.
std::int64_t LongestSort(std::size_t itemsize) {
#if HWY_TARGET <= HWY_AVX3
  return itemsize >= 4 ? std::numeric_limits<std::int64_t>::max() : 0;
#else
  return itemsize == 4 ? 256 : 0;
#endif
}
#else  // two elements a vector: no gain
template <class T> void SortShort(T* x, T*, std::int64_t n) { std::sort(x, x + n); }
std::int64_t LongestSort(std::size_t) { return 0; }
template <class T> void Merge(std::span<RunsToMerge<T>, 4> runs) {
  for (const auto& r : runs) std::merge(r.left, r.left_end, r.right, r.right_end, r.out);
}
#endif

void SortFloats(float* x, float* spare, std::int64_t n) { SortShort(x, spare, n); }
void SortDoubles(double* x, double* spare, std::int64_t n) { SortShort(x, spare, n); }
void SortInt32(std::int32_t* x, std::int32_t* spare, std::int64_t n) { SortShort(x, spare, n); }
void SortUint32(std::uint32_t* x, std::uint32_t* spare, std::int64_t n) { SortShort(x, spare, n); }
void SortInt64(std::int64_t* x, std::int64_t* spare, std::int64_t n) { SortShort(x, spare, n); }
void SortUint64(std::uint64_t* x, std::uint64_t* spare, std::int64_t n) { SortShort(x, spare, n); }
void MergeFloats(std::span<RunsToMerge<float>, 4> runs) { Merge(runs); }
void MergeDoubles(std::span<RunsToMerge<double>, 4> runs) { Merge(runs); }
void MergeInt32(std::span<RunsToMerge<std::int32_t>, 4> runs) { Merge(runs); }
void MergeUint32(std::span<RunsToMerge<std::uint32_t>, 4> runs) { Merge(runs); }
void MergeInt64(std::span<RunsToMerge<std::int64_t>, 4> runs) { Merge(runs); }
void MergeUint64(std::span<RunsToMerge<std::uint64_t>, 4> runs) { Merge(runs); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(MergeFloats);
HWY_EXPORT(MergeDoubles);
HWY_EXPORT(MergeInt32);
HWY_EXPORT(MergeUint32);
HWY_EXPORT(MergeInt64);
HWY_EXPORT(MergeUint64);
HWY_EXPORT(SortFloats);
HWY_EXPORT(SortDoubles);
HWY_EXPORT(SortInt32);
HWY_EXPORT(SortUint32);
HWY_EXPORT(SortInt64);
HWY_EXPORT(SortUint64);
HWY_EXPORT(LongestSort);

std::int64_t longest_vector_sort(std::size_t itemsize) { return HWY_DYNAMIC_DISPATCH(LongestSort)(itemsize); }
void sort_by_vectors(float* x, float* spare, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(SortFloats)(x, spare, n);
}
void sort_by_vectors(double* x, double* spare, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(SortDoubles)(x, spare, n);
}
void sort_by_vectors(std::int32_t* x, std::int32_t* spare, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(SortInt32)(x, spare, n);
}
void sort_by_vectors(std::uint32_t* x, std::uint32_t* spare, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(SortUint32)(x, spare, n);
}
void sort_by_vectors(std::int64_t* x, std::int64_t* spare, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(SortInt64)(x, spare, n);
}
void sort_by_vectors(std::uint64_t* x, std::uint64_t* spare, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(SortUint64)(x, spare, n);
}

void merge_by_vectors(std::span<RunsToMerge<float>, 4> runs) { HWY_DYNAMIC_DISPATCH(MergeFloats)(runs); }
void merge_by_vectors(std::span<RunsToMerge<double>, 4> runs) { HWY_DYNAMIC_DISPATCH(MergeDoubles)(runs); }
void merge_by_vectors(std::span<RunsToMerge<std::int32_t>, 4> runs) {
  HWY_DYNAMIC_DISPATCH(MergeInt32)(runs);
}
void merge_by_vectors(std::span<RunsToMerge<std::uint32_t>, 4> runs) {
  HWY_DYNAMIC_DISPATCH(MergeUint32)(runs);
}
void merge_by_vectors(std::span<RunsToMerge<std::int64_t>, 4> runs) {
  HWY_DYNAMIC_DISPATCH(MergeInt64)(runs);
}
void merge_by_vectors(std::span<RunsToMerge<std::uint64_t>, 4> runs) {
  HWY_DYNAMIC_DISPATCH(MergeUint64)(runs);
}
}  // namespace tessera::kernels
#endif
