/// @file
/// Element types. A dtype is a run-time value; only kernels are templates over element types.
#pragma once
#include <tessera/detail/standard.hpp>
#include <tessera/half.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <type_traits>

namespace tessera {

/// An element type, as a run-time value. The default is float32, and int32 for integers, as in JAX.
struct Dtype {
  int code = 0;  ///< index in the list below
  friend constexpr bool operator==(const Dtype&, const Dtype&) = default;
};

/// The fifteen dtypes. bfloat16 and float16 are storage types: ops on them compute in float32 and round each
/// result once, to nearest even; factorizations refuse them.
inline constexpr Dtype bool_{0}, int8{1}, int16{2}, int32{3}, int64{4}, uint8{5}, uint16{6}, uint32{7},
    uint64{8}, float32{9}, float64{10}, complex64{11}, complex128{12}, bfloat16{13}, float16{14};
inline constexpr int dtype_count = 15;  ///< number of dtypes

std::ostream& operator<<(std::ostream&, Dtype);  ///< prints float32
std::string name(Dtype);                         ///< "float32"
std::string short_name(Dtype);                   ///< "f32": the form of program texts
Dtype dtype_from_name(const std::string&);  ///< either form; ArgumentError that lists the names otherwise

/// Bytes of one element.
constexpr std::size_t itemsize(Dtype d) {
  constexpr std::size_t sizes[dtype_count] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 8, 16, 2, 2};
  return sizes[d.code];
}
constexpr bool is_bool(Dtype d) { return d.code == 0; }                             ///< bool_
constexpr bool is_signed_integer(Dtype d) { return d.code >= 1 && d.code <= 4; }    ///< int8 to int64
constexpr bool is_unsigned_integer(Dtype d) { return d.code >= 5 && d.code <= 8; }  ///< uint8 to uint64
constexpr bool is_integer(Dtype d) { return d.code >= 1 && d.code <= 8; }  ///< with or without sign; not bool
constexpr bool is_half(Dtype d) { return d == bfloat16 || d == float16; }  ///< bfloat16, float16
/// float32, float64, bfloat16, float16
constexpr bool is_floating(Dtype d) { return d == float32 || d == float64 || is_half(d); }
constexpr bool is_complex(Dtype d) { return d == complex64 || d == complex128; }  ///< complex64, complex128
constexpr bool is_inexact(Dtype d) { return d.code >= 9; }  ///< real or complex floating point
/// The real type of a complex type's parts; any other type itself.
constexpr Dtype real_dtype(Dtype d) { return d == complex64 ? float32 : d == complex128 ? float64 : d; }
/// complex128 for float64 and complex128, complex64 for all others.
constexpr Dtype complex_dtype(Dtype d) { return d == float64 || d == complex128 ? complex128 : complex64; }

/// Dtype of a C++ element type: dtype_of<float>() == float32. Types without one do not compile.
template <class T> constexpr Dtype dtype_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, bool>)
    return bool_;
  else if constexpr (std::is_same_v<U, float>)
    return float32;
  else if constexpr (std::is_same_v<U, double>)
    return float64;
  else if constexpr (std::is_same_v<U, std::complex<float>>)
    return complex64;
  else if constexpr (std::is_same_v<U, std::complex<double>>)
    return complex128;
  else if constexpr (std::is_same_v<U, bfloat16_t>)
    return bfloat16;
  else if constexpr (std::is_same_v<U, float16_t>)
    return float16;
  else {
    static_assert(std::is_integral_v<U>, "tessera has no dtype for this element type");
    constexpr int log2_bytes = sizeof(U) == 1 ? 0 : sizeof(U) == 2 ? 1 : sizeof(U) == 4 ? 2 : 3;
    return Dtype{(std::is_signed_v<U> ? 1 : 5) + log2_bytes};
  }
}

}  // namespace tessera
