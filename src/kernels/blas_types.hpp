// The four types of BLAS and LAPACK: from a dtype to the type, from the type to the variant of a function.
// Typed views of untyped memory.
#pragma once
#include <tessera/dtype.hpp>

#include <complex>
#include <type_traits>

namespace tessera::kernels {

using c32 = std::complex<float>;
using c64 = std::complex<double>;
template <class T> struct RealOf { using type = T; };
template <class R> struct RealOf<std::complex<R>> { using type = R; };
template <class T> using real_of = typename RealOf<T>::type;
template <class T> inline constexpr bool complex_type = !std::is_same_v<T, real_of<T>>;

// Calls f(T{}) for the four types that LAPACK supports.
template <class F> decltype(auto) visit_inexact(Dtype dtype, F&& f) {
  if (dtype == float32) return f(float{});
  if (dtype == float64) return f(double{});
  if (dtype == complex64) return f(c32{});
  return f(c64{});
}

// The variant of a function for T; of two variants, that for real or for complex types.
template <class T, class Single, class Double> constexpr auto variant(Single of_single, Double of_double) {
  if constexpr (std::is_same_v<real_of<T>, float>)
    return of_single;
  else
    return of_double;
}
template <class T, class S, class D, class C, class Z> constexpr auto variant(S s, D d, C c, Z z) {
  if constexpr (complex_type<T>)
    return variant<T>(c, z);
  else
    return variant<T>(s, d);
}
// BLAS takes real scalars by value and complex ones by address.
template <class T> auto scalar(const T& x) {
  if constexpr (complex_type<T>)
    return &x;
  else
    return x;
}
template <class T> T conjugate(T x) {
  if constexpr (complex_type<T>)
    return std::conj(x);
  else
    return x;
}
template <class T> real_of<T> real_part(T x) {
  if constexpr (complex_type<T>)
    return x.real();
  else
    return x;
}

template <class T> const T* as(const void* p) { return static_cast<const T*>(p); }
template <class T> T* as(void* p) { return static_cast<T*>(p); }

}  // namespace tessera::kernels
