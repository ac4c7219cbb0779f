// Transposes of N x N items in registers, N items to 16 bytes.
#if defined(TESSERA_KERNELS_TURN_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_KERNELS_TURN_INL_HPP
#undef TESSERA_KERNELS_TURN_INL_HPP
#else
#define TESSERA_KERNELS_TURN_INL_HPP
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// dst row i, item j = src row j, item i. Strides in bytes.
#if HWY_TARGET == HWY_SCALAR
template <class T, std::size_t N>
HWY_INLINE void turn(const std::byte* src, std::int64_t src_stride, std::byte* dst, std::int64_t dst_stride) {
  constexpr auto item = static_cast<std::int64_t>(sizeof(T)), n = static_cast<std::int64_t>(N);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      std::memcpy(dst + i * dst_stride + j * item, src + j * src_stride + i * item, sizeof(T));
}
#else
// Transposes by log2(N) perfect shuffles: w[2i], w[2i+1] = the interleaved halves of v[i] and v[i + N/2].
template <class T, std::size_t N>
HWY_INLINE void turn(const std::byte* src, std::int64_t src_stride, std::byte* dst, std::int64_t dst_stride) {
  const hn::Full128<T> d;
  hn::Vec<hn::Full128<T> > v[N], w[N];
  for (std::size_t i = 0; i < N; ++i)
    v[i] = hn::LoadU(d, reinterpret_cast<const T*>(src + static_cast<std::int64_t>(i) * src_stride));
  for (std::size_t stage = 1; stage < N; stage *= 2) {
    for (std::size_t i = 0; i < N / 2; ++i) {
      w[2 * i] = hn::InterleaveLower(d, v[i], v[i + N / 2]);
      w[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + N / 2]);
    }
    for (std::size_t i = 0; i < N; ++i) v[i] = w[i];
  }
  for (std::size_t i = 0; i < N; ++i)
    hn::StoreU(v[i], d, reinterpret_cast<T*>(dst + static_cast<std::int64_t>(i) * dst_stride));
}
#endif

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
// The same for items of 4 or 8 bytes, N of them to 64 bytes; `store` takes row i of the result.
template <class T, std::size_t N, class Store>
HWY_INLINE void turn_lines(const std::byte* src, std::int64_t src_stride, Store&& store) {
  static_assert(N * sizeof(T) == 64 && sizeof(T) >= 4);
  const hn::Full512<T> d;
  alignas(64) T lower[N], upper[N];
  for (std::size_t i = 0; i < N; ++i) {
    lower[i] = static_cast<T>(i / 2 + i % 2 * N);
    upper[i] = static_cast<T>(lower[i] + N / 2);
  }
  const auto interleave = [](auto a, auto b, auto at) HWY_ATTR {
    if constexpr (sizeof(T) == 4)
      return hn::Vec<hn::Full512<T> >{_mm512_permutex2var_epi32(a.raw, at.raw, b.raw)};
    else
      return hn::Vec<hn::Full512<T> >{_mm512_permutex2var_epi64(a.raw, at.raw, b.raw)};
  };
  const auto at_lower = hn::Load(d, lower), at_upper = hn::Load(d, upper);
  hn::Vec<hn::Full512<T> > v[N], w[N];
  for (std::size_t i = 0; i < N; ++i)
    v[i] = hn::LoadU(d, reinterpret_cast<const T*>(src + static_cast<std::int64_t>(i) * src_stride));
  for (std::size_t stage = 1; stage < N; stage *= 2) {
    for (std::size_t i = 0; i < N / 2; ++i) {
      w[2 * i] = interleave(v[i], v[i + N / 2], at_lower);
      w[2 * i + 1] = interleave(v[i], v[i + N / 2], at_upper);
    }
    for (std::size_t i = 0; i < N; ++i) v[i] = w[i];
  }
  for (std::size_t i = 0; i < N; ++i) store(static_cast<std::int64_t>(i), v[i]);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#endif  // TESSERA_KERNELS_TURN_INL_HPP
