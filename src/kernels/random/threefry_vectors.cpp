#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/random/threefry_vectors.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/elementwise/erf_inv-inl.hpp"
#include "kernels/random/threefry_vectors.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

using u32 = std::uint32_t;

#define TESSERA_ROUND(r) x0 += x1, x1 = (x1 << (r)) | (x1 >> (32 - (r))), x1 ^= x0
#define TESSERA_ROUNDS_EVEN TESSERA_ROUND(13), TESSERA_ROUND(15), TESSERA_ROUND(26), TESSERA_ROUND(6)
#define TESSERA_ROUNDS_ODD TESSERA_ROUND(17), TESSERA_ROUND(29), TESSERA_ROUND(16), TESSERA_ROUND(24)

HWY_INLINE void hash(u32 k0, u32 k1, u32& first, u32& second) {
  const u32 k2 = k0 ^ k1 ^ 0x1BD11BDAu;
  u32 x0 = first + k0, x1 = second + k1;
  TESSERA_ROUNDS_EVEN;
  x0 += k1, x1 += k2 + 1;
  TESSERA_ROUNDS_ODD;
  x0 += k2, x1 += k0 + 2;
  TESSERA_ROUNDS_EVEN;
  x0 += k0, x1 += k1 + 3;
  TESSERA_ROUNDS_ODD;
  x0 += k1, x1 += k2 + 4;
  TESSERA_ROUNDS_EVEN;
  first = x0 + k2, second = x1 + k0 + 5;
}
#undef TESSERA_ROUND
#undef TESSERA_ROUNDS_EVEN
#undef TESSERA_ROUNDS_ODD

// Four vectors of counters: the rounds of one depend on each other, and those of the others fill the gaps.
template <class D> struct FourVectors {
  using V = hn::Vec<D>;
  V a, b, c, e;
  HWY_INLINE FourVectors(D d, const u32* x, std::int64_t lanes)
      : a(hn::LoadU(d, x)),
        b(hn::LoadU(d, x + lanes)),
        c(hn::LoadU(d, x + 2 * lanes)),
        e(hn::LoadU(d, x + 3 * lanes)) {}
  HWY_INLINE void store(D d, u32* x, std::int64_t lanes) const {
    hn::StoreU(a, d, x), hn::StoreU(b, d, x + lanes), hn::StoreU(c, d, x + 2 * lanes),
        hn::StoreU(e, d, x + 3 * lanes);
  }
  HWY_INLINE void add(V k) { a = hn::Add(a, k), b = hn::Add(b, k), c = hn::Add(c, k), e = hn::Add(e, k); }
};
template <int r, class D> HWY_INLINE void Round(FourVectors<D>& x, FourVectors<D>& y) {
  x.a = hn::Add(x.a, y.a), x.b = hn::Add(x.b, y.b), x.c = hn::Add(x.c, y.c), x.e = hn::Add(x.e, y.e);
  y.a = hn::RotateRight<32 - r>(y.a), y.b = hn::RotateRight<32 - r>(y.b);
  y.c = hn::RotateRight<32 - r>(y.c), y.e = hn::RotateRight<32 - r>(y.e);
  y.a = hn::Xor(y.a, x.a), y.b = hn::Xor(y.b, x.b), y.c = hn::Xor(y.c, x.c), y.e = hn::Xor(y.e, x.e);
}
template <class D> HWY_INLINE void EvenRounds(FourVectors<D>& x, FourVectors<D>& y) {
  Round<13>(x, y), Round<15>(x, y), Round<26>(x, y), Round<6>(x, y);
}
template <class D> HWY_INLINE void OddRounds(FourVectors<D>& x, FourVectors<D>& y) {
  Round<17>(x, y), Round<29>(x, y), Round<16>(x, y), Round<24>(x, y);
}

void HashCounters(u32 k0, u32 k1, u32* HWY_RESTRICT x0, u32* HWY_RESTRICT x1, std::int64_t n) {
  const hn::ScalableTag<u32> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const u32 k2 = k0 ^ k1 ^ 0x1BD11BDAu;
  const auto set = [d](u32 key) HWY_ATTR { return hn::Set(d, key); };
  const auto key0 = set(k0), key1 = set(k1), key2 = set(k2);
  const auto after1 = set(k2 + 1), after2 = set(k0 + 2), after3 = set(k1 + 3), after4 = set(k2 + 4),
             after5 = set(k0 + 5);
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    FourVectors<decltype(d)> x(d, x0 + i, lanes), y(d, x1 + i, lanes);
    x.add(key0), y.add(key1);
    EvenRounds(x, y);
    x.add(key1), y.add(after1);
    OddRounds(x, y);
    x.add(key2), y.add(after2);
    EvenRounds(x, y);
    x.add(key0), y.add(after3);
    OddRounds(x, y);
    x.add(key1), y.add(after4);
    EvenRounds(x, y);
    x.add(key2), y.add(after5);
    x.store(d, x0 + i, lanes), y.store(d, x1 + i, lanes);
  }
  for (; i < n; ++i) hash(k0, k1, x0[i], x1[i]);
}
void HashKeyedCounters(const u32* HWY_RESTRICT k0, const u32* HWY_RESTRICT k1, u32* HWY_RESTRICT x0,
                       u32* HWY_RESTRICT x1, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) hash(k0[i], k1[i], x0[i], x1[i]);
}

HWY_INLINE u32 rest_of(u32 x, u32 divisor, u32 inverse) {
  const u32 rest = x - static_cast<u32>((std::uint64_t{x} * inverse) >> 32) * divisor;
  return std::min(rest, rest - divisor);  // a negative difference wraps to a larger number
}
void WordsToIntegers(const u32* HWY_RESTRICT high, const u32* HWY_RESTRICT low, std::int64_t n,
                     Divisor32 span, u32 scale, u32 first, u32* HWY_RESTRICT out) {
  const u32 d = span.divisor, inverse = span.inverse;
  for (std::int64_t i = 0; i < n; ++i) {
    const u32 mixed = rest_of(high[i], d, inverse) * scale + rest_of(low[i], d, inverse);
    out[i] = first + rest_of(mixed, d, inverse);
  }
}

template <class T>
void fold(const u32* HWY_RESTRICT x0, const u32* HWY_RESTRICT x1, std::int64_t n, void* out) {
  T* HWY_RESTRICT to = static_cast<T*>(out);
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(x0[i] ^ x1[i]);
}
void WordsToBits(const u32* HWY_RESTRICT x0, const u32* HWY_RESTRICT x1, std::int64_t n, int width,
                 void* out) {
  if (width == 8) return fold<std::uint8_t>(x0, x1, n, out);
  if (width == 16) return fold<std::uint16_t>(x0, x1, n, out);
  if (width == 32) return fold<u32>(x0, x1, n, out);
  std::uint64_t* HWY_RESTRICT to = static_cast<std::uint64_t*>(out);
  for (std::int64_t i = 0; i < n; ++i) to[i] = std::uint64_t{x0[i]} << 32 | x1[i];
}

// value * span + minval is rounded once, as by JAX's compiler. If the product is exact, both ways agree.
template <bool exact_product, class T, class U> HWY_INLINE void scaled_uniform(const U* HWY_RESTRICT bits,
                                                                               std::int64_t n, T minval,
                                                                               T span, T* HWY_RESTRICT out) {
  constexpr int drop = sizeof(T) == 4 ? 9 : 12;
  constexpr U one = sizeof(T) == 4 ? U{0x3F800000u} : static_cast<U>(0x3FF0000000000000ull);
  for (std::int64_t i = 0; i < n; ++i) {
    const U pattern = (bits[i] >> drop) | one;
    T value;
    std::memcpy(&value, &pattern, sizeof value);
    value -= T(1);
    value = exact_product ? value * span + minval : std::fma(value, span, minval);
    out[i] = value > minval ? value : minval;
  }
}
template <class T, class U>
HWY_INLINE void uniform(const U* bits, std::int64_t n, T minval, T maxval, T* out) {
  const T span = maxval - minval;
  int exponent;
  if (std::abs(std::frexp(span, &exponent)) == T(0.5))
    return scaled_uniform<true>(bits, n, minval, span, out);
  scaled_uniform<false>(bits, n, minval, span, out);
}
void Uniform32(const u32* bits, std::int64_t n, float minval, float maxval, float* out) {
  uniform(bits, n, minval, maxval, out);
}
void Uniform64(const std::uint64_t* bits, std::int64_t n, double minval, double maxval, double* out) {
  uniform(bits, n, minval, maxval, out);
}

// values has space for a whole vector after n.
template <class T> void normal(T* values, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto root_two = hn::Set(d, static_cast<T>(1.41421356237309504880));
  for (std::int64_t i = 0; i < n; i += lanes)
    hn::StoreU(hn::Mul(root_two, ErfInvRounded(d, hn::LoadU(d, values + i))), d, values + i);
}
void Normal32(float* values, std::int64_t n) { normal(values, n); }
void Normal64(double* values, std::int64_t n) { normal(values, n); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(HashCounters);
HWY_EXPORT(HashKeyedCounters);
HWY_EXPORT(WordsToBits);
HWY_EXPORT(Uniform32);
HWY_EXPORT(Uniform64);
HWY_EXPORT(Normal32);
HWY_EXPORT(Normal64);
HWY_EXPORT(WordsToIntegers);

void hash_counters(std::uint32_t k0, std::uint32_t k1, std::uint32_t* x0, std::uint32_t* x1, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(HashCounters)(k0, k1, x0, x1, n);
}
void hash_keyed_counters(const std::uint32_t* k0, const std::uint32_t* k1, std::uint32_t* x0,
                         std::uint32_t* x1, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(HashKeyedCounters)(k0, k1, x0, x1, n);
}
void words_to_integers(const std::uint32_t* high, const std::uint32_t* low, std::int64_t n, Divisor32 span,
                       std::uint32_t scale, std::uint32_t first, std::uint32_t* out) {
  HWY_DYNAMIC_DISPATCH(WordsToIntegers)(high, low, n, span, scale, first, out);
}
void words_to_bits(const std::uint32_t* x0, const std::uint32_t* x1, std::int64_t n, int width, void* out) {
  HWY_DYNAMIC_DISPATCH(WordsToBits)(x0, x1, n, width, out);
}
void bits_to_uniform(const std::uint32_t* bits, std::int64_t n, float minval, float maxval, float* out) {
  HWY_DYNAMIC_DISPATCH(Uniform32)(bits, n, minval, maxval, out);
}
void bits_to_uniform(const std::uint64_t* bits, std::int64_t n, double minval, double maxval, double* out) {
  HWY_DYNAMIC_DISPATCH(Uniform64)(bits, n, minval, maxval, out);
}
void uniform_to_normal(float* values, std::int64_t n) { HWY_DYNAMIC_DISPATCH(Normal32)(values, n); }
void uniform_to_normal(double* values, std::int64_t n) { HWY_DYNAMIC_DISPATCH(Normal64)(values, n); }
}  // namespace tessera::kernels
#endif
