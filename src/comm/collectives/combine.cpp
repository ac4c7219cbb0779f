#include "comm/collectives/combine.hpp"

#include <tessera/error.hpp>

#include <cmath>
#include <complex>
#include <string>
#include <type_traits>

#include "base/independent.hpp"

namespace tessera::comm {
namespace {

template <class T, class Op> void each(const void* a, const void* b, void* out, std::int64_t count, Op op) {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T* z = static_cast<T*>(out);
  // out is a or b itself, or does not overlap them
  TESSERA_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) z[i] = op(x[i], y[i]);
}

// A NaN on either side is returned: x is tested for NaN, and the comparison with a NaN in y is false.
template <class T> T larger(T x, T y) { return x > y || x != x ? x : y; }
template <class T> T smaller(T x, T y) { return x < y || x != x ? x : y; }

// Integers wrap around, as in NumPy.
template <class T> T wrapped_sum(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) + static_cast<std::make_unsigned_t<T>>(y));
  else
    return x + y;
}
template <class T> T wrapped_product(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y));
  else
    return x * y;
}

template <class T>
void combine_real(ReduceKind kind, const void* a, const void* b, void* out, std::int64_t n) {
  switch (kind) {
    case ReduceKind::sum: return each<T>(a, b, out, n, [](T x, T y) { return wrapped_sum(x, y); });
    case ReduceKind::prod: return each<T>(a, b, out, n, [](T x, T y) { return wrapped_product(x, y); });
    case ReduceKind::max: return each<T>(a, b, out, n, [](T x, T y) { return larger(x, y); });
    case ReduceKind::min: return each<T>(a, b, out, n, [](T x, T y) { return smaller(x, y); });
    default: break;
  }
  if constexpr (std::is_integral_v<T>) {
    switch (kind) {
      case ReduceKind::all:
        return each<T>(a, b, out, n, [](T x, T y) { return static_cast<T>(x != 0 && y != 0); });
      case ReduceKind::any:
        return each<T>(a, b, out, n, [](T x, T y) { return static_cast<T>(x != 0 || y != 0); });
      case ReduceKind::bit_and: return each<T>(a, b, out, n, [](T x, T y) { return static_cast<T>(x & y); });
      case ReduceKind::bit_or: return each<T>(a, b, out, n, [](T x, T y) { return static_cast<T>(x | y); });
      case ReduceKind::bit_xor: return each<T>(a, b, out, n, [](T x, T y) { return static_cast<T>(x ^ y); });
      default: break;
    }
  }
}

// Halves are added in float and rounded after each addition: meant for sums in which all terms but one are
// zero.
template <class T>
void combine_halves(ReduceKind kind, const void* a, const void* b, void* out, std::int64_t n) {
  switch (kind) {
    case ReduceKind::sum: return each<T>(a, b, out, n, [](float x, float y) { return T(x + y); });
    case ReduceKind::prod: return each<T>(a, b, out, n, [](float x, float y) { return T(x * y); });
    case ReduceKind::max: return each<T>(a, b, out, n, [](float x, float y) { return T(larger(x, y)); });
    default: return each<T>(a, b, out, n, [](float x, float y) { return T(smaller(x, y)); });
  }
}

template <class T>
void combine_complex(ReduceKind kind, const void* a, const void* b, void* out, std::int64_t n) {
  if (kind == ReduceKind::sum) return each<T>(a, b, out, 2 * n, [](T x, T y) { return x + y; });
  using C = std::complex<T>;
  each<C>(a, b, out, n, [](C x, C y) {
    return C(x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real());
  });
}

void combine_bool(ReduceKind kind, const void* a, const void* b, void* out, std::int64_t n) {
  using U = std::uint8_t;  // 0 or 1
  switch (kind) {
    case ReduceKind::sum:
    case ReduceKind::max:
    case ReduceKind::any:
    case ReduceKind::bit_or: return each<U>(a, b, out, n, [](U x, U y) { return static_cast<U>(x | y); });
    case ReduceKind::bit_xor: return each<U>(a, b, out, n, [](U x, U y) { return static_cast<U>(x ^ y); });
    default: return each<U>(a, b, out, n, [](U x, U y) { return static_cast<U>(x & y); });
  }
}

}  // namespace

void require_reducible(ReduceKind kind, Dtype dtype) {
  const bool of_kernels = kind == ReduceKind::count_nonzero || kind == ReduceKind::logsumexp;
  const bool order = kind == ReduceKind::max || kind == ReduceKind::min;
  const bool arithmetic = kind == ReduceKind::sum || kind == ReduceKind::prod;
  if (!of_kernels && (arithmetic || (order && !is_complex(dtype)) || is_integer(dtype) || is_bool(dtype)))
    return;
  throw InternalError(std::string("comm: no reduction ") + name(kind) + " of " + name(dtype));
}

void combine(ReduceKind kind, Dtype dtype, const void* a, const void* b, void* out, std::int64_t n) {
  switch (dtype.code) {
    case bool_.code: return combine_bool(kind, a, b, out, n);
    case int8.code: return combine_real<std::int8_t>(kind, a, b, out, n);
    case int16.code: return combine_real<std::int16_t>(kind, a, b, out, n);
    case int32.code: return combine_real<std::int32_t>(kind, a, b, out, n);
    case int64.code: return combine_real<std::int64_t>(kind, a, b, out, n);
    case uint8.code: return combine_real<std::uint8_t>(kind, a, b, out, n);
    case uint16.code: return combine_real<std::uint16_t>(kind, a, b, out, n);
    case uint32.code: return combine_real<std::uint32_t>(kind, a, b, out, n);
    case uint64.code: return combine_real<std::uint64_t>(kind, a, b, out, n);
    case float32.code: return combine_real<float>(kind, a, b, out, n);
    case float64.code: return combine_real<double>(kind, a, b, out, n);
    case complex64.code: return combine_complex<float>(kind, a, b, out, n);
    case complex128.code: return combine_complex<double>(kind, a, b, out, n);
    case bfloat16.code: return combine_halves<bfloat16_t>(kind, a, b, out, n);
    case float16.code: return combine_halves<float16_t>(kind, a, b, out, n);
    default: throw InternalError("comm::combine: unknown dtype code " + std::to_string(dtype.code));
  }
}

}  // namespace tessera::comm
