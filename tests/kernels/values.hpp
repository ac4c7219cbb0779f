// Values for kernel tests: every dtype's edge values, and reproducible random ones.
#pragma once
#include <tessera/dtype.hpp>

#include <complex>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kernels/elementwise/elementwise.hpp"
#include "kernels/visit.hpp"

namespace tessera::kernels::testing {

using tessera::kernels::is_complex_type;

template <class T> bool nan(T x) {
  if constexpr (is_complex_type<T>)
    return nan(x.real()) || nan(x.imag());
  else
    return x != x;
}
// NumPy's order.
template <class T> bool before(T a, T b) {
  if (nan(a) || nan(b)) return !nan(a) && nan(b);
  if constexpr (is_complex_type<T>)
    return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
  else
    return a < b;
}

template <class T> std::vector<T> edges() {
  using L = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, bool>)
    return {false, true};
  else if constexpr (is_complex_type<T>) {
    std::vector<T> all;
    for (const auto re : edges<typename T::value_type>())
      for (const auto im : {0, 1, -2}) all.emplace_back(re, static_cast<typename T::value_type>(im));
    return all;
  } else if constexpr (std::is_floating_point_v<T>)
    return {T(0),          T(-0.0),        T(1),           T(-1),           T(0.5),
            T(-0.5),       T(1.5),         T(2.5),         T(-2.5),         T(3),
            T(-7),         L::min(),       L::max(),       L::denorm_min(), -L::denorm_min(),
            L::infinity(), -L::infinity(), L::quiet_NaN(), L::lowest(),     L::epsilon()};
  else if constexpr (std::is_signed_v<T>)
    return {L::min(), static_cast<T>(L::min() + 1), -7,      -2, -1, 0, 1, 2, 3, 7,
            100,      static_cast<T>(L::max() - 1), L::max()};
  else
    return {0, 1, 2, 3, 7, 100, static_cast<T>(L::max() / 2 + 1), static_cast<T>(L::max() - 1), L::max()};
}

// Bounded values that keep arithmetic exact or nearly so.
template <class T> std::vector<T> random_values(std::int64_t n, std::uint32_t seed = 1) {
  std::mt19937 generator(seed);
  std::vector<T> values(n);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if constexpr (std::is_same_v<T, bool>)
      values[i] = (generator() & 1) != 0;
    else if constexpr (is_complex_type<T>) {
      using R = typename T::value_type;
      const auto re = static_cast<R>(static_cast<std::int32_t>(generator())),
                 im = static_cast<R>(static_cast<std::int32_t>(generator()));
      values[i] = T(re / R(1 << 30), im / R(1 << 30));
    } else if constexpr (std::is_floating_point_v<T>)
      values[i] = static_cast<T>(static_cast<std::int32_t>(generator())) / T(1 << 30);
    else
      values[i] = static_cast<T>(generator());
  }
  return values;
}

// std::vector<bool> is not contiguous memory: bool arrays are stored in bytes.
template <class T> using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
template <class T> std::vector<Stored<T>> stored(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

template <class T> bool same(T a, T b) {
  if constexpr (is_complex_type<T>)
    return same(a.real(), b.real()) && same(a.imag(), b.imag());
  else
    return a == b || (a != a && b != b);
}

// The dtypes in which kernels compute; the two 16-bit floats are only stored, moved and cast.
inline const std::vector<Dtype>& all_dtypes() {
  static const std::vector<Dtype> all = [] {
    std::vector<Dtype> d;
    for (int code = 0; code < dtype_count; ++code)
      if (!is_half(Dtype{code})) d.push_back({code});
    return d;
  }();
  return all;
}
inline std::vector<Dtype> with_halves() {
  auto all = all_dtypes();
  all.insert(all.end(), {bfloat16, float16});
  return all;
}

inline const Map* map_named(std::string_view name) {
  for (const Map* map : all_maps())
    if (map->name() == name) return map;
  return nullptr;
}
// nullptr if there is no such map, or if it does not support that dtype.
inline MapFn find_map(std::string_view name, Dtype in) {
  const Map* map = map_named(name);
  return map == nullptr ? nullptr : map->of(in);
}

// Sizes around the vector lengths.
inline const std::vector<std::int64_t> odd_sizes = {0,  1,  2,  3,  7,  8,   9,    15,  16,
                                                    17, 31, 33, 63, 65, 127, 1000, 1025};

}  // namespace tessera::kernels::testing
