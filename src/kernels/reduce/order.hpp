// NumPy's order of values: complex numbers by their real parts first; whether a value is NaN.
#pragma once
#include "kernels/visit.hpp"

namespace tessera::kernels {

template <class T> bool is_nan(const T& x) {
  if constexpr (is_complex_type<T>)
    return x.real() != x.real() || x.imag() != x.imag();
  else
    return x != x;
}
template <class T> bool less(const T& a, const T& b) {
  if constexpr (is_complex_type<T>)
    return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
  else
    return a < b;
}

}  // namespace tessera::kernels
