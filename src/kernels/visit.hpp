// Dispatch from a dtype to its C++ type: visit(dtype, []<class T>(T) { ... }). The argument only names the
// type. Kernels are compiled for thirteen types: bfloat16 and float16 are widened to float32. Code that only
// accesses single elements (printing, writing one) uses visit_stored, which covers all fifteen.
#pragma once
#include <tessera/dtype.hpp>

#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tessera::kernels {

template <class T> inline constexpr bool is_half_type = false;
template <> inline constexpr bool is_half_type<bfloat16_t> = true;
template <> inline constexpr bool is_half_type<float16_t> = true;
template <class T> inline constexpr bool is_complex_type = false;
template <class R> inline constexpr bool is_complex_type<std::complex<R>> = true;

// Throws InternalError: a kernel was called with a 16-bit float that should have been widened (graph/halves).
[[noreturn]] void no_arithmetic_in(Dtype);

template <class F> decltype(auto) visit(Dtype dtype, F&& f) {
  switch (dtype.code) {
    case 0: return f(bool{});
    case 1: return f(std::int8_t{});
    case 2: return f(std::int16_t{});
    case 3: return f(std::int32_t{});
    case 4: return f(std::int64_t{});
    case 5: return f(std::uint8_t{});
    case 6: return f(std::uint16_t{});
    case 7: return f(std::uint32_t{});
    case 8: return f(std::uint64_t{});
    case 9: return f(float{});
    case 10: return f(double{});
    case 11: return f(std::complex<float>{});
    case 12: return f(std::complex<double>{});
    default: no_arithmetic_in(dtype);
  }
}
template <class F> decltype(auto) visit_stored(Dtype dtype, F&& f) {
  if (dtype == bfloat16) return f(bfloat16_t{});
  if (dtype == float16) return f(float16_t{});
  return visit(dtype, f);
}
// The four real floating-point types; double for any other dtype.
template <class F> decltype(auto) visit_real(Dtype dtype, F&& f) {
  if (dtype == bfloat16) return f(bfloat16_t{});
  if (dtype == float16) return f(float16_t{});
  if (dtype == float32) return f(float{});
  return f(double{});
}

// The least and greatest values of a type: infinities if it has them.
template <class T> constexpr T lowest() {
  if constexpr (is_complex_type<T>)
    return T(lowest<typename T::value_type>(), lowest<typename T::value_type>());
  else if constexpr (std::is_floating_point_v<T>)
    return -std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::min();
}
template <class T> constexpr T highest() {
  if constexpr (is_complex_type<T>)
    return T(highest<typename T::value_type>(), highest<typename T::value_type>());
  else if constexpr (std::is_floating_point_v<T>)
    return std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::max();
}

}  // namespace tessera::kernels
