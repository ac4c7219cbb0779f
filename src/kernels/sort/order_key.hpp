// Unsigned keys in sorting order: NaN last and all equal, -0 equal to 0, false before true.
#pragma once
#include <bit>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "kernels/sort/sort.hpp"
#include "kernels/visit.hpp"

namespace tessera::kernels {

template <std::size_t bytes> struct UnsignedOf;
template <> struct UnsignedOf<1> { using type = std::uint8_t; };
template <> struct UnsignedOf<2> { using type = std::uint16_t; };
template <> struct UnsignedOf<4> { using type = std::uint32_t; };
template <> struct UnsignedOf<8> { using type = std::uint64_t; };
template <class T> using OrderKey = typename UnsignedOf<sizeof(T)>::type;

template <class T> inline OrderKey<T> order_key(T value) {
  using K = OrderKey<T>;
  constexpr K top = static_cast<K>(K(1) << (8 * sizeof(T) - 1));
  if constexpr (std::is_floating_point_v<T>) {
    if (value != value) return static_cast<K>(~K(0));
    const K bits = std::bit_cast<K>(value + T(0));  // -0 + 0 is 0
    return (bits & top) != 0 ? static_cast<K>(~bits) : static_cast<K>(bits | top);
  } else if constexpr (std::is_signed_v<T> && !std::is_same_v<T, bool>) {
    return static_cast<K>(static_cast<K>(value) ^ top);
  } else {
    return static_cast<K>(value);
  }
}

// Complex keys are ordered by real, then imaginary part; NaN in either part makes the number NaN.
struct ComplexKey {
  std::uint64_t real, imag;
  friend auto operator<=>(const ComplexKey&, const ComplexKey&) = default;
};
template <class R> inline ComplexKey order_key(std::complex<R> value) {
  if (value.real() != value.real() || value.imag() != value.imag())
    return {~std::uint64_t{0}, ~std::uint64_t{0}};
  return {order_key(value.real()), order_key(value.imag())};
}

// Keys whose ascending order is the requested order.
template <class K> K oriented(K key, SortOrder order) {
  if constexpr (std::is_same_v<K, ComplexKey>)
    return order.descending ? ComplexKey{~key.real, ~key.imag} : key;
  else
    return order.descending ? static_cast<K>(~key) : key;
}

}  // namespace tessera::kernels
