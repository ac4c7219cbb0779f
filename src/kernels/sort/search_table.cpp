#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sort/search_table.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "kernels/sort/search_table.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Vectors that are searched side by side, so that the latencies of their loads overlap.
constexpr int together = 4;
// A table of this size or less is compared as a whole.
constexpr std::int64_t short_table = 64;

template <bool right, class V> HWY_INLINE auto Before(V entry, V key) {
  return right ? hn::Not(hn::Lt(key, entry)) : hn::Lt(entry, key);
}

// Counts the entries before each key.
template <bool right, class D, class V> HWY_INLINE void CountBefore(D d, const hn::TFromD<D>* table,
                                                                    std::int64_t n, const V (&keys)[together],
                                                                    V (&places)[together]) {
  for (auto& place : places) place = hn::Zero(d);
  for (std::int64_t j = 0; j < n; ++j) {
    const auto entry = hn::Set(d, table[j]);
    for (int v = 0; v < together; ++v)  // a true lane is -1
      places[v] = hn::Sub(places[v], hn::VecFromMask(d, Before<right>(entry, keys[v])));
  }
}
// Halves the remaining entries behind each place.
template <bool right, class D, class V> HWY_INLINE void Halve(D d, const hn::TFromD<D>* table, std::int64_t n,
                                                              const V (&keys)[together],
                                                              V (&places)[together]) {
  using T = hn::TFromD<D>;
  for (auto& place : places) place = hn::Zero(d);
  for (std::int64_t left = n, half = 0; left > 0; left -= half) {
    half = std::max<std::int64_t>(left / 2, 1);
    const auto step = hn::Set(d, static_cast<T>(half)), probed = hn::Set(d, static_cast<T>(half - 1));
    for (int v = 0; v < together; ++v) {
      const auto entry = hn::GatherIndex(d, table, hn::Add(places[v], probed));
      places[v] = hn::Add(places[v], hn::IfThenElseZero(Before<right>(entry, keys[v]), step));
    }
  }
}

template <bool right, class T>
void SearchTable(const T* table, std::int64_t n, const T* keys, std::int64_t count, std::int64_t* out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), piece = together * lanes;
  HWY_ALIGN T some[together * hn::MaxLanes(hn::ScalableTag<T>())] = {};
  for (; count > 0; keys += piece, out += piece, count -= piece) {
    const auto used = std::min(piece, count);
    const T* from = keys;
    if (used < piece) {
      std::copy_n(keys, used, some);
      from = some;
    }
    hn::Vec<decltype(d)> wanted[together], places[together];
    for (int v = 0; v < together; ++v) wanted[v] = hn::LoadU(d, from + v * lanes);
    if (n <= short_table)
      CountBefore<right>(d, table, n, wanted, places);
    else
      Halve<right>(d, table, n, wanted, places);
    for (int v = 0; v < together; ++v) hn::Store(places[v], d, some + v * lanes);
    for (std::int64_t i = 0; i < used; ++i) out[i] = some[i];
  }
}
void SearchOf32(bool right, const std::int32_t* table, std::int64_t n, const std::int32_t* keys,
                std::int64_t count, std::int64_t* out) {
  (right ? SearchTable<true, std::int32_t> : SearchTable<false, std::int32_t>)(table, n, keys, count, out);
}
void SearchOf64(bool right, const std::int64_t* table, std::int64_t n, const std::int64_t* keys,
                std::int64_t count, std::int64_t* out) {
  (right ? SearchTable<true, std::int64_t> : SearchTable<false, std::int64_t>)(table, n, keys, count, out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(SearchOf32);
HWY_EXPORT(SearchOf64);

void search_table(bool right, const std::int32_t* table, std::int64_t n, const std::int32_t* keys,
                  std::int64_t count, std::int64_t* out) {
  HWY_DYNAMIC_DISPATCH(SearchOf32)(right, table, n, keys, count, out);
}
void search_table(bool right, const std::int64_t* table, std::int64_t n, const std::int64_t* keys,
                  std::int64_t count, std::int64_t* out) {
  HWY_DYNAMIC_DISPATCH(SearchOf64)(right, table, n, keys, count, out);
}
}  // namespace tessera::kernels
#endif
