#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/move/positions.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "base/independent.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/move/positions.hpp"

#ifndef TESSERA_KERNELS_MOVE_ORDERS
#define TESSERA_KERNELS_MOVE_ORDERS
namespace tessera::kernels {
// Row m: the set bits of m in ascending order, each of them as `words` lanes of 32 bits; zeros behind them.
template <int masks, int words> constexpr auto orders_of_bits() {
  struct {
    std::uint32_t rows[masks][8] = {};
    constexpr const std::uint32_t* operator[](std::size_t m) const { return rows[m]; }
  } table;
  for (std::uint32_t m = 0; m < masks; ++m)
    for (std::uint32_t bit = 0, to = 0; bit < 8 / words; ++bit)
      for (std::uint32_t w = 0; w < words && (m >> bit & 1) != 0; ++w) table.rows[m][to++] = bit * words + w;
  return table;
}
static constexpr auto order_of_words = orders_of_bits<256, 1>();
static constexpr auto order_of_pairs = orders_of_bits<16, 2>();
}  // namespace tessera::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class I> void Positions(const I* indices, std::int64_t n, const Addressed& dim, std::int64_t* out) {
  const std::int64_t last = std::max<std::int64_t>(dim.extent - 1, 0), extent = dim.extent, start = dim.start,
                     low = dim.clamps ? 0 : INT64_MIN, high = dim.clamps ? last : INT64_MAX;
  const auto size = static_cast<std::uint64_t>(std::max<std::int64_t>(dim.stop - start, 0));
  TESSERA_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t at = static_cast<std::int64_t>(indices[i]);
    at += at < 0 ? extent : 0;
    at = at < low ? low : at;
    at = at > high ? high : at;
    at = static_cast<std::int64_t>(static_cast<std::uint64_t>(at) - static_cast<std::uint64_t>(start));
    out[i] = static_cast<std::uint64_t>(at) < size ? at : -1;
  }
}
void PositionsOf32(const std::int32_t* indices, std::int64_t n, const Addressed& dim, std::int64_t* out) {
  Positions(indices, n, dim, out);
}
void PositionsOf64(const std::int64_t* indices, std::int64_t n, const Addressed& dim, std::int64_t* out) {
  Positions(indices, n, dim, out);
}

template <class D> using BytesOf = hn::Rebind<std::uint8_t, D>;
// The mask's bytes widened to the items' size, to 64 bits in two steps.
template <class D> HWY_INLINE auto Widened(D d, const std::uint8_t* mask) {
  const auto bytes = hn::LoadU(BytesOf<D>(), mask);
  if constexpr (sizeof(hn::TFromD<D>) == 4)
    return hn::PromoteTo(d, bytes);
  else
    return hn::PromoteTo(d, hn::PromoteTo(hn::Rebind<std::uint32_t, D>(), bytes));
}

// The chosen lanes moved to the front. With GCC 12 Highway's Compress copies a table to the stack for each
// vector where the CPU lacks the instruction, and for items of 64 bits.
template <class D> HWY_INLINE hn::Vec<D> ToTheFront(D d, hn::Vec<D> items, hn::Mask<D> chosen) {
  constexpr bool is_wide = sizeof(hn::TFromD<D>) == 8;
  constexpr auto lanes = hn::MaxLanes(D());
  std::uint8_t bits[8] = {};
  if constexpr (is_wide && lanes == 8) {
    hn::StoreMaskBits(d, chosen, bits);
    const auto order = hn::PromoteTo(d, hn::LoadU(hn::Rebind<std::uint32_t, D>(), order_of_words[*bits]));
    return hn::TableLookupLanes(items, hn::IndicesFromVec(d, order));
  } else if constexpr (HWY_TARGET == HWY_AVX2) {
    const hn::Repartition<std::uint32_t, D> words;
    hn::StoreMaskBits(d, chosen, bits);
    const auto order = hn::LoadU(words, is_wide ? order_of_pairs[*bits] : order_of_words[*bits]);
    return hn::BitCast(d, hn::TableLookupLanes(hn::BitCast(words, items), hn::IndicesFromVec(words, order)));
  } else {
    return hn::Compress(items, chosen);
  }
}

// Compresses one vector at a time: the next vector is written behind the chosen items of the last one.
template <class T>
std::int64_t Choose(const T* items, const std::uint8_t* mask, std::int64_t n, T* out, std::int64_t count) {
  std::int64_t i = 0;
  T* const end = out + count;
  if constexpr (HWY_TARGET != HWY_SCALAR) {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (; i + lanes <= n && out + lanes <= end; i += lanes) {
      const auto chosen = hn::Ne(Widened(d, mask + i), hn::Zero(d));
      hn::StoreU(ToTheFront(d, hn::LoadU(d, items + i), chosen), d, out);
      out += hn::CountTrue(d, chosen);
    }
  }
  for (; out < end; ++i) {
    *out = items[i];
    out += mask[i] != 0 ? 1 : 0;
  }
  return i;
}
std::int64_t ChooseOf32(const std::uint32_t* items, const std::uint8_t* mask, std::int64_t n,
                        std::uint32_t* out, std::int64_t count) {
  return Choose(items, mask, n, out, count);
}
std::int64_t ChooseOf64(const std::uint64_t* items, const std::uint8_t* mask, std::int64_t n,
                        std::uint64_t* out, std::int64_t count) {
  return Choose(items, mask, n, out, count);
}

// A vector's comparison is a word of bits, the first element the lowest: its elements change places if the
// first is to be the highest of a byte.
void PackBits(const std::uint8_t* mask, std::int64_t bytes, bool lowest_first, std::uint8_t* out) {
  std::int64_t i = 0;
  if constexpr (HWY_TARGET != HWY_SCALAR) {
    alignas(16) static constexpr std::uint8_t highest_first[16] = {7,  6,  5,  4,  3,  2,  1, 0,
                                                                   15, 14, 13, 12, 11, 10, 9, 8};
    alignas(16) static constexpr std::uint8_t as_they_are[16] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                                 8, 9, 10, 11, 12, 13, 14, 15};
    const hn::ScalableTag<std::uint8_t> d;
    const auto order = hn::LoadDup128(d, lowest_first ? as_they_are : highest_first);
    const auto step = static_cast<std::int64_t>(hn::Lanes(d)) / 8;
    for (; i + step <= bytes; i += step) {
      const auto elements = hn::TableLookupBytes(hn::LoadU(d, mask + 8 * i), order);
      std::uint8_t bits[sizeof(std::uint64_t)];  // as many as a store may write
      hn::StoreMaskBits(d, hn::Ne(elements, hn::Zero(d)), bits);
      std::copy_n(bits, step, out + i);
    }
  }
  for (; i < bytes; ++i) {
    std::uint32_t byte = 0;
    for (int k = 0; k < 8; ++k)
      byte |= static_cast<std::uint32_t>(mask[8 * i + k] != 0) << (lowest_first ? k : 7 - k);
    out[i] = static_cast<std::uint8_t>(byte);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(PositionsOf32);
HWY_EXPORT(PositionsOf64);
HWY_EXPORT(ChooseOf32);
HWY_EXPORT(ChooseOf64);
HWY_EXPORT(PackBits);

void pack_bits(const std::uint8_t* mask, std::int64_t bytes, bool lowest_first, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(PackBits)(mask, bytes, lowest_first, out);
}

void find_positions(Dtype dtype, const void* indices, std::int64_t n, const Addressed& dim,
                    std::int64_t* out) {
  if (dtype == int32)
    return HWY_DYNAMIC_DISPATCH(PositionsOf32)(static_cast<const std::int32_t*>(indices), n, dim, out);
  if (dtype == int64)
    return HWY_DYNAMIC_DISPATCH(PositionsOf64)(static_cast<const std::int64_t*>(indices), n, dim, out);
  if (n > 0) find_cast(dtype, int64)(&indices, out, n);
  HWY_DYNAMIC_DISPATCH(PositionsOf64)(out, n, dim, out);
}

namespace {
// Every item is written to the next output position, which advances only if it was chosen: no branch to
// mispredict.
template <class T>
std::int64_t choose_one_by_one(const void* items, const std::uint8_t* mask, std::int64_t count, void* out) {
  const T* item = static_cast<const T*>(items);
  T* to = static_cast<T*>(out);
  for (const T* const end = to + count; to < end; ++item, ++mask) {
    *to = *item;
    to += *mask != 0 ? 1 : 0;
  }
  return item - static_cast<const T*>(items);
}
}  // namespace

std::int64_t choose_items(std::size_t itemsize, const void* items, const std::uint8_t* mask, std::int64_t n,
                          std::int64_t count, void* out) {
  if (itemsize == 1) return choose_one_by_one<std::uint8_t>(items, mask, count, out);
  if (itemsize == 2) return choose_one_by_one<std::uint16_t>(items, mask, count, out);
  if (itemsize == 4)
    return HWY_DYNAMIC_DISPATCH(ChooseOf32)(static_cast<const std::uint32_t*>(items), mask, n,
                                            static_cast<std::uint32_t*>(out), count);
  return HWY_DYNAMIC_DISPATCH(ChooseOf64)(static_cast<const std::uint64_t*>(items), mask, n,
                                          static_cast<std::uint64_t*>(out), count);
}
}  // namespace tessera::kernels
#endif
