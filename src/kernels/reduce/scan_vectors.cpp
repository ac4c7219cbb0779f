// Within a vector each step combines lanes with those 1, 2, 4, ... before them; what came before the vector
// is combined last, so that successive vectors wait for one operation only:
//     x     a  b   c    d
//     1     a  ab  bc   cd
//     2     a  ab  abc  abcd
#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/scan_vectors.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstdint>

#include "base/thresholds.hpp"
#include "kernels/move/stream.hpp"
#include "kernels/reduce/scan_vectors.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

struct RunningSum {
  template <class T> static HWY_INLINE T of(T a, T b) { return static_cast<T>(a + b); }
  template <class V> static HWY_INLINE V of_vectors(V a, V b) { return hn::Add(a, b); }
  // The sum with it keeps the sign of -0.
  template <class T> static constexpr T neutral = std::is_floating_point_v<T> ? static_cast<T>(-0.0) : T(0);
};
struct RunningProduct {
  template <class T> static HWY_INLINE T of(T a, T b) { return a * b; }
  template <class V> static HWY_INLINE V of_vectors(V a, V b) { return hn::Mul(a, b); }
  template <class T> static constexpr T neutral = T(1);
};

#if HWY_TARGET != HWY_SCALAR
// Lane i of the result is lane i - distance of v; the first lanes are neutral.
template <class Op, int distance, class D, class V> HWY_INLINE V MovedUp(D d, V v) {
  using T = hn::TFromD<D>;
  constexpr std::size_t lanes = hn::MaxLanes(D());
  const auto first = hn::FirstN(d, distance);
  const auto neutral = hn::Set(d, Op::template neutral<T>);
  if constexpr (lanes * sizeof(T) == 16) {  // shifts stay within 16 bytes
    return hn::IfThenElse(first, neutral, hn::ShiftLeftLanes<distance>(d, v));
  } else {
    using I = hn::TFromD<hn::RebindToSigned<D>>;
    HWY_ALIGN I from[lanes];
    for (std::size_t i = 0; i < lanes; ++i) from[i] = static_cast<I>(i < distance ? 0 : i - distance);
    return hn::IfThenElse(first, neutral, hn::TableLookupLanes(v, hn::SetTableIndices(d, from)));
  }
}

template <class Op, class D, class V> HWY_INLINE V Prefixes(D d, V v) {
  constexpr std::size_t lanes = hn::MaxLanes(D());
  v = Op::of_vectors(MovedUp<Op, 1>(d, v), v);
  if constexpr (lanes > 2) v = Op::of_vectors(MovedUp<Op, 2>(d, v), v);
  if constexpr (lanes > 4) v = Op::of_vectors(MovedUp<Op, 4>(d, v), v);
  if constexpr (lanes > 8) v = Op::of_vectors(MovedUp<Op, 8>(d, v), v);
  return v;
}

template <class D, class V> HWY_INLINE V OfLastLane(D d, V v) {
  using I = hn::TFromD<hn::RebindToSigned<D>>;
  constexpr std::size_t lanes = hn::MaxLanes(D());
  HWY_ALIGN I from[lanes];
  for (std::size_t i = 0; i < lanes; ++i) from[i] = static_cast<I>(lanes - 1);
  return hn::TableLookupLanes(v, hn::SetTableIndices(d, from));
}

// Whole vectors from element `at` in the direction of the scan; returns the first element that is left.
template <class Op, bool reverse, bool streams, class T>
HWY_NOINLINE std::int64_t ScanVectors(const LineToScan<T>& line, std::int64_t at, T& running) {
  const hn::ScalableTag<T> d;
  constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  auto before = hn::Set(d, running);
  for (; at + lanes <= line.n; at += lanes) {
    const std::int64_t place = reverse ? line.n - at - lanes : at;
    auto x = hn::LoadU(d, line.x + place);
    if constexpr (reverse) x = hn::Reverse(d, x);
    const auto prefixes = Prefixes<Op>(d, x);
    auto result = Op::of_vectors(before, prefixes);
    before = Op::of_vectors(before, OfLastLane(d, prefixes));
    if constexpr (reverse) result = hn::Reverse(d, result);
    if constexpr (streams)
      hn::Stream(result, d, line.out + place);
    else
      hn::StoreU(result, d, line.out + place);
  }
  running = hn::GetLane(before);
  return at;
}
#endif

template <class Op, class T> void Scan(const LineToScan<T>& line) {
  T running = line.before == nullptr ? Op::template neutral<T> : *line.before;
  std::int64_t at = 0;
  const auto one_by_one = [&](std::int64_t end) {
    for (; at < end; ++at) {
      const std::int64_t place = line.reverse ? line.n - 1 - at : at;
      running = Op::of(running, line.x[place]);
      line.out[place] = running;
    }
  };
#if HWY_TARGET != HWY_SCALAR
  // As copies: lines far larger than the cache are not fetched before they are overwritten.
  constexpr std::int64_t streamed_bytes = std::int64_t{16} << 20;
  const auto width = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()) * sizeof(T));
  const bool streams = line.out != line.x && !line.reverse &&
                       line.n * static_cast<std::int64_t>(sizeof(T)) >= threshold(streamed_bytes) &&
                       line.n * static_cast<std::int64_t>(sizeof(T)) > width;
  if (streams) {
    const auto beyond = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(line.out)) & (width - 1);
    one_by_one((width - beyond) % width / static_cast<std::int64_t>(sizeof(T)));
    at = ScanVectors<Op, false, true>(line, at, running);
    finish_streaming();
  } else {
    at = line.reverse ? ScanVectors<Op, true, false>(line, at, running)
                      : ScanVectors<Op, false, false>(line, at, running);
  }
#endif
  one_by_one(line.n);
}

void SumFloats(const LineToScan<float>& line) { Scan<RunningSum>(line); }
void SumDoubles(const LineToScan<double>& line) { Scan<RunningSum>(line); }
void SumWords(const LineToScan<std::uint32_t>& line) { Scan<RunningSum>(line); }
void SumLongWords(const LineToScan<std::uint64_t>& line) { Scan<RunningSum>(line); }
void MultiplyFloats(const LineToScan<float>& line) { Scan<RunningProduct>(line); }
void MultiplyDoubles(const LineToScan<double>& line) { Scan<RunningProduct>(line); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(SumFloats);
HWY_EXPORT(SumDoubles);
HWY_EXPORT(SumWords);
HWY_EXPORT(SumLongWords);
HWY_EXPORT(MultiplyFloats);
HWY_EXPORT(MultiplyDoubles);
void sum_by_vectors(const LineToScan<float>& line) { HWY_DYNAMIC_DISPATCH(SumFloats)(line); }
void sum_by_vectors(const LineToScan<double>& line) { HWY_DYNAMIC_DISPATCH(SumDoubles)(line); }
void sum_by_vectors(const LineToScan<std::uint32_t>& line) { HWY_DYNAMIC_DISPATCH(SumWords)(line); }
void sum_by_vectors(const LineToScan<std::uint64_t>& line) { HWY_DYNAMIC_DISPATCH(SumLongWords)(line); }
void multiply_by_vectors(const LineToScan<float>& line) { HWY_DYNAMIC_DISPATCH(MultiplyFloats)(line); }
void multiply_by_vectors(const LineToScan<double>& line) { HWY_DYNAMIC_DISPATCH(MultiplyDoubles)(line); }
}  // namespace tessera::kernels
#endif
