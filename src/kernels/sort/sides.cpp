// Elements on one side of others, kept in their order: a vector of them moves at once.
#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sort/sides.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/thresholds.hpp"
#include "kernels/parallel.hpp"
#include "kernels/sort/order_key.hpp"
#include "kernels/sort/select.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The lanes of the mask, moved to the front. Highway 1.0 copies a table of 2 KiB for each vector of 64 bits.
template <class D, class V, class M> HWY_INLINE V MovedUp(D, V v, M mask) {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  if constexpr (sizeof(hn::TFromD<D>) == 8) return V{_mm512_maskz_compress_epi64(mask.raw, v.raw)};
#endif
  return hn::Compress(v, mask);
}

// order_key of a vector.
template <class D, class V> HWY_INLINE auto OrderKeys(D d, V v) {
  using T = hn::TFromD<D>;
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  constexpr int sign = 8 * static_cast<int>(sizeof(T)) - 1;
  const auto bits = hn::BitCast(di, hn::Add(v, hn::Zero(d)));  // -0 + 0 is 0
  const auto turned = hn::Or(hn::BitCast(du, hn::ShiftRight<sign>(bits)),
                             hn::Set(du, static_cast<OrderKey<T>>(OrderKey<T>(1) << sign)));
  const auto is_nan = hn::MaskFromVec(hn::BitCast(du, hn::VecFromMask(d, hn::Ne(v, v))));
  return hn::IfThenElse(is_nan, hn::Set(du, static_cast<OrderKey<T>>(~OrderKey<T>(0))),
                        hn::Xor(hn::BitCast(du, bits), turned));
}

template <class T>
KeysBetween Between(const T* x, std::int64_t n, OrderKey<T> least, OrderKey<T> most, OrderKey<T>* out) {
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto low = hn::Set(du, least), high = hn::Set(du, most);
  KeysBetween found;
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto keys = OrderKeys(d, hn::LoadU(d, x + i));
    const auto is_below = hn::Lt(keys, low), is_kept = hn::Not(hn::Or(is_below, hn::Gt(keys, high)));
    found.below += static_cast<std::int64_t>(hn::CountTrue(du, is_below));
    hn::StoreU(MovedUp(du, keys, is_kept), du, out + found.kept);
    found.kept += static_cast<std::int64_t>(hn::CountTrue(du, is_kept));
  }
  for (; i < n; ++i) {
    const OrderKey<T> key = order_key(x[i]);
    found.below += key < least;
    out[found.kept] = key;
    found.kept += key >= least && key <= most;
  }
  return found;
}
KeysBetween FloatsBetween(const float* x, std::int64_t n, std::uint32_t least, std::uint32_t most,
                          std::uint32_t* out) {
  return Between(x, n, least, most, out);
}
KeysBetween DoublesBetween(const double* x, std::int64_t n, std::uint64_t least, std::uint64_t most,
                           std::uint64_t* out) {
  return Between(x, n, least, most, out);
}

template <class D> HWY_INLINE auto LoadSides(D d, const std::uint8_t* sides) {
  const hn::Rebind<std::uint8_t, D> bytes;
  if constexpr (sizeof(hn::TFromD<D>) == 4)
    return hn::PromoteTo(d, hn::LoadU(bytes, sides));
  else
    return hn::PromoteTo(d, hn::PromoteTo(hn::Rebind<std::uint32_t, D>(), hn::LoadU(bytes, sides)));
}
// Moves the payload of each side to its place, and advances the places.
template <class P> void Divide(const std::uint8_t* sides, const P* payload, std::int64_t n, P* to[3]) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<P> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, payload + i);
    const auto side = LoadSides(d, sides + i);
    for (int s = 0; s < 3; ++s) {
      const auto is_here = hn::Eq(side, hn::Set(d, static_cast<P>(s)));
      const std::size_t count = hn::CountTrue(d, is_here);
      if (count == 0) continue;  // a store of nothing to a page that was never written takes long
      hn::BlendedStore(MovedUp(d, v, is_here), hn::FirstN(d, count), d, to[s]);
      to[s] += count;
    }
  }
#endif
  for (; i < n; ++i) *to[sides[i]]++ = payload[i];
}
void Divide4(const std::uint8_t* sides, const std::uint32_t* payload, std::int64_t n, std::uint32_t* to[3]) {
  Divide(sides, payload, n, to);
}
void Divide8(const std::uint8_t* sides, const std::uint64_t* payload, std::int64_t n, std::uint64_t* to[3]) {
  Divide(sides, payload, n, to);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(FloatsBetween);
HWY_EXPORT(DoublesBetween);
HWY_EXPORT(Divide4);
HWY_EXPORT(Divide8);

KeysBetween keys_between(const float* x, std::int64_t n, std::uint32_t least, std::uint32_t most,
                         std::uint32_t* out) {
  return HWY_DYNAMIC_DISPATCH(FloatsBetween)(x, n, least, most, out);
}
KeysBetween keys_between(const double* x, std::int64_t n, std::uint64_t least, std::uint64_t most,
                         std::uint64_t* out) {
  return HWY_DYNAMIC_DISPATCH(DoublesBetween)(x, n, least, most, out);
}

namespace {
void divide_part(const std::uint8_t* sides, const std::uint32_t* payload, std::int64_t n,
                 std::uint32_t* to[3]) {
  HWY_DYNAMIC_DISPATCH(Divide4)(sides, payload, n, to);
}
void divide_part(const std::uint8_t* sides, const std::uint64_t* payload, std::int64_t n,
                 std::uint64_t* to[3]) {
  HWY_DYNAMIC_DISPATCH(Divide8)(sides, payload, n, to);
}
}  // namespace

// The elements on each side. Counters of a byte run in vectors.
std::array<std::int64_t, 3> count_sides(const std::uint8_t* sides, std::int64_t n) {
  constexpr std::int64_t piece = 255;
  std::array<std::int64_t, 3> counts = {n, 0, 0};
  for (std::int64_t i = 0; i < n; i += piece) {
    const std::int64_t end = std::min(i + piece, n);
    std::uint8_t equal = 0, after = 0;
    for (std::int64_t j = i; j < end; ++j) equal += sides[j] == 1, after += sides[j] == 2;
    counts[1] += equal, counts[2] += after;
  }
  counts[0] -= counts[1] + counts[2];
  return counts;
}

template <class P> std::array<std::int64_t, 3> divide_by_sides(const std::uint8_t* sides, const P* payload,
                                                               std::int64_t n, P* out) {
  constexpr std::int64_t shared_from = 1 << 15;  // elements for each thread
  const std::int64_t parts = std::clamp<std::int64_t>(n / threshold(shared_from), 1, threads());
  std::vector<std::array<std::int64_t, 3>> places(static_cast<std::size_t>(parts));
  const auto for_parts = [&](auto&& work) {
    share(parts, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t p = first; p < last; ++p) work(places[p], n * p / parts, n * (p + 1) / parts);
    });
  };
  for_parts([&](auto& place, std::int64_t begin, std::int64_t end) {
    place = count_sides(sides + begin, end - begin);
  });
  std::array<std::int64_t, 3> counts{};
  for (std::int64_t s = 0, total = 0; s < 3; ++s)
    for (auto& place : places) counts[s] += place[s], total += std::exchange(place[s], total);
  for_parts([&](auto& place, std::int64_t begin, std::int64_t end) {
    P* to[3] = {out + place[0], out + place[1], out + place[2]};
    divide_part(sides + begin, payload + begin, end - begin, to);
  });
  return counts;
}
template std::array<std::int64_t, 3> divide_by_sides(const std::uint8_t*, const std::uint32_t*, std::int64_t,
                                                     std::uint32_t*);
template std::array<std::int64_t, 3> divide_by_sides(const std::uint8_t*, const std::uint64_t*, std::int64_t,
                                                     std::uint64_t*);

}  // namespace tessera::kernels
#endif
