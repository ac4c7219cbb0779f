// Conversions between every pair of dtypes, compiled for each instruction set.
#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/cast.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/independent.hpp"
#include "kernels/elementwise/map_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

using CastTable = std::array<std::array<MapFn, dtype_count>, dtype_count>;

template <class T> inline constexpr bool is_complex_type = false;
template <class R> inline constexpr bool is_complex_type<std::complex<R>> = true;

// Truncates towards 0; values out of range become the nearest limit, NaN becomes 0.
template <class To, class From> inline To saturate(From x) {
  using Limits = std::numeric_limits<To>;
  if constexpr (Limits::digits <= std::numeric_limits<From>::digits) {  // both limits are exact
    constexpr From least = static_cast<From>(Limits::min()), most = static_cast<From>(Limits::max());
    const From kept = x < least ? least : x > most ? most : x, number = x == x ? kept : From(0);
    using Wide = std::conditional_t<sizeof(To) < 4, std::int32_t, To>;  // an instruction converts to it
    return static_cast<To>(static_cast<Wide>(number));
  }
  constexpr From low = static_cast<From>(Limits::min());                     // a power of two or 0: exact
  constexpr From past = static_cast<From>(Limits::max() / 2 + 1) * From(2);  // max + 1, exact
  const bool below = x < low, above = x >= past, fits = !below & !above & (x == x);
  const To inside = static_cast<To>(fits ? x : From(0));
  return below ? Limits::min() : above ? Limits::max() : inside;
}

struct Convert {
  template <class To, class From> static inline To of(From x) {
    if constexpr (std::is_same_v<From, bfloat16_t> || std::is_same_v<From, float16_t>)
      return of<To>(static_cast<float>(x));
    else if constexpr (std::is_same_v<To, bool>)
      return x != From(0);
    else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
      return saturate<To>(x);
    else
      return static_cast<To>(x);
  }
};

// noinline, because inlining into the casts of complex arrays would compile it twice.
template <class From, class To>
[[gnu::noinline]] void cast(const void* const* in, void* out, std::int64_t n) {
  const From* a = static_cast<const From*>(in[0]);
  To* r = static_cast<To*>(out);
  TESSERA_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) r[i] = Convert::of<To>(a[i]);
}
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using Halves = hn::Rebind<hwy::float16_t, Floats>;

// The CPU's conversion sets the quiet bit of a NaN, whose bits are kept here.
void widen_halves(const void* const* in, void* out, std::int64_t n) {
  const auto* a = static_cast<const std::uint16_t*>(in[0]);
  auto* r = static_cast<float*>(out);
  const Floats d;
  const hn::RebindToUnsigned<Floats> words;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto stored = hn::LoadU(hn::Rebind<std::uint16_t, Floats>(), a + i);
    auto number = hn::PromoteTo(d, hn::BitCast(Halves(), stored));
    if (const auto is_nan = hn::IsNaN(number); !hn::AllFalse(d, is_nan)) [[unlikely]] {
      const auto bits = hn::PromoteTo(words, stored), size = hn::And(bits, hn::Set(words, 0x7fffU));
      const auto nan = hn::Or(hn::ShiftLeft<13>(size), hn::Set(words, 0x7f800000U)),
                 sign = hn::ShiftLeft<16>(hn::Xor(bits, size));
      number = hn::IfThenElse(is_nan, hn::BitCast(d, hn::Or(nan, sign)), number);
    }
    hn::StoreU(number, d, r + i);
  }
  for (; i < n; ++i) r[i] = float16_t::from_bits(a[i]);
}
void narrow_to_halves(const void* const* in, void* out, std::int64_t n) {
  const auto* a = static_cast<const float*>(in[0]);
  auto* r = static_cast<std::uint16_t*>(out);
  const Floats d;
  const hn::Rebind<std::uint16_t, Floats> stored;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::BitCast(stored, hn::DemoteTo(Halves(), hn::LoadU(d, a + i))), stored, r + i);
  for (; i < n; ++i) r[i] = float16_t(a[i]).bits();
}
#endif

template <class T> void copy(const void* const* in, void* out, std::int64_t n) {
  if (in[0] != out && n > 0) std::memmove(out, in[0], n * sizeof(T));
}

// Integer casts: a target that is not wider keeps the lower bits, whatever the signs; a wider one extends the
// operand's sign, whether or not the target is signed. One loop serves all pairs that differ only in signs.
template <class From, class To> MapFn integer_cast() {
  if constexpr (sizeof(To) == sizeof(From))
    return copy<std::make_unsigned_t<To>>;
  else if constexpr (sizeof(To) < sizeof(From))
    return cast<std::make_unsigned_t<From>, std::make_unsigned_t<To>>;
  else
    return cast<From, std::make_unsigned_t<To>>;
}
template <class From, class To> MapFn real_cast() {
  if constexpr (std::is_same_v<From, To>)
    return copy<To>;
  else if constexpr (std::is_integral_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>)
    return integer_cast<From, To>();
  else
    return cast<From, To>;
}

// Parts of a complex array are pairs of reals. Casts between complex and any dtype other than its own real
// one go through that real dtype in pieces: one loop per real dtype instead of one per pair.
constexpr std::int64_t piece = 512;

template <class R, class To> void cast_real_part(const void* const* in, void* out, std::int64_t n) {
  const R* a = static_cast<const R*>(in[0]);
  To* r = static_cast<To*>(out);
  R parts[piece];
  for (std::int64_t begin = 0; begin < n; begin += piece) {
    const std::int64_t count = std::min(piece, n - begin);
    for (std::int64_t i = 0; i < count; ++i) parts[i] = a[2 * (begin + i)];
    const void* operand[] = {parts};
    real_cast<R, To>()(operand, r + begin, count);
  }
}
template <class From, class R> void cast_to_real_part(const void* const* in, void* out, std::int64_t n) {
  const From* a = static_cast<const From*>(in[0]);
  R* r = static_cast<R*>(out);
  R parts[piece];
  for (std::int64_t begin = 0; begin < n; begin += piece) {
    const std::int64_t count = std::min(piece, n - begin);
    const void* operand[] = {a + begin};
    real_cast<From, R>()(operand, parts, count);
    for (std::int64_t i = 0; i < count; ++i) r[2 * (begin + i)] = parts[i], r[2 * (begin + i) + 1] = 0;
  }
}
template <class R> void is_nonzero(const void* const* in, void* out, std::int64_t n) {
  const R* a = static_cast<const R*>(in[0]);
  for (std::int64_t i = 0; i < n; ++i) static_cast<bool*>(out)[i] = (a[2 * i] != 0) | (a[2 * i + 1] != 0);
}
template <class From, class To> void cast_parts(const void* const* in, void* out, std::int64_t n) {
  real_cast<From, To>()(in, out, 2 * n);
}

template <class From, class To> MapFn cast_of() {
  if constexpr (is_complex_type<From> && is_complex_type<To>)
    return cast_parts<typename From::value_type, typename To::value_type>;
  else if constexpr (is_complex_type<From> && std::is_same_v<To, bool>)
    return is_nonzero<typename From::value_type>;
  else if constexpr (is_complex_type<From>)
    return cast_real_part<typename From::value_type, To>;
  else if constexpr (is_complex_type<To>)
    return cast_to_real_part<From, typename To::value_type>;
  else
    return real_cast<From, To>();
}

template <class From, class... To> void add_row(CastTable& table) {
  ((table[dtype_of<From>().code][dtype_of<To>().code] = cast_of<From, To>()), ...);
}
template <class... T> void add_all(CastTable& table) {
  (add_row<T, T...>(table), ...);
  // A bool is a byte that is 0 or 1; compilers vectorise its copy better as bool.
  table[0] = table[uint8.code];
  table[0][0] = copy<bool>;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  table[float16.code][float32.code] = widen_halves;
  table[float32.code][float16.code] = narrow_to_halves;
#endif
}

void FillCasts(CastTable& table) {
  add_all<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
          std::uint32_t, std::uint64_t, float, double, std::complex<float>, std::complex<double>, bfloat16_t,
          float16_t>(table);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(FillCasts);

MapFn find_cast(Dtype from, Dtype to) {
  static const auto table = [] {
    std::array<std::array<MapFn, dtype_count>, dtype_count> filling{};
    HWY_DYNAMIC_DISPATCH(FillCasts)(filling);
    return filling;
  }();
  return table[from.code][to.code];
}
}  // namespace tessera::kernels
#endif
