#include "kernels/sort/keys_of_row.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

namespace tessera::kernels {
namespace {

template <class T> T element_of(OrderKey<T> key) {
  using K = OrderKey<T>;
  constexpr K top = static_cast<K>(K(1) << (8 * sizeof(T) - 1));
  if constexpr (std::is_floating_point_v<T>)
    return std::bit_cast<T>(static_cast<K>((key & top) != 0 ? key ^ top : ~key));
  else if constexpr (std::is_same_v<T, bool>)
    return key != 0;
  else
    return static_cast<T>(order_key(static_cast<T>(key)));  // flipping the sign bit twice restores it
}

}  // namespace

void read_keys(Dtype dtype, const void* row, std::int64_t n, SortOrder order, void* keys) {
  visit(dtype, [&]<class T>(T) {
    const T* from = static_cast<const T*>(row);
    auto* to = static_cast<decltype(order_key(T{}))*>(keys);
    for (std::int64_t i = 0; i < n; ++i) to[i] = oriented(order_key(from[i]), order);
  });
}

void write_elements(Dtype dtype, const void* keys, std::int64_t n, SortOrder order, void* row) {
  visit(dtype, [&]<class T>(T) {
    if constexpr (std::is_arithmetic_v<T>) {
      const auto* from = static_cast<const OrderKey<T>*>(keys);
      T* to = static_cast<T*>(row);
      for (std::int64_t i = 0; i < n; ++i) to[i] = element_of<T>(oriented(from[i], order));
    }
  });
}

Alike alike_of(Dtype dtype, const void* row, std::int64_t n) {
  Alike alike;
  visit(dtype, [&]<class T>(T) {
    if constexpr (std::is_floating_point_v<T>) {
      const T* from = static_cast<const T*>(row);
      using K = OrderKey<T>;
      constexpr K minus_zero = static_cast<K>(K(1) << (8 * sizeof(T) - 1));
      bool has_minus_zero = false, has_nan = false;
      for (std::int64_t i = 0; i < n; ++i) {
        has_minus_zero |= std::bit_cast<K>(from[i]) == minus_zero;
        has_nan |= from[i] != from[i];
      }
      const auto collect = [&](std::vector<std::byte>& list, auto&& is_one) {
        for (std::int64_t i = 0; i < n; ++i) {
          if (!is_one(from[i])) continue;
          const auto* bytes = reinterpret_cast<const std::byte*>(from + i);
          list.insert(list.end(), bytes, bytes + sizeof(T));
        }
      };
      if (has_minus_zero) collect(alike.zeros, [](T x) { return x == T(0); });
      if (has_nan) collect(alike.nans, [](T x) { return x != x; });
    }
  });
  return alike;
}

void put_alike(Dtype dtype, const Alike& alike, const void* keys, std::int64_t n, SortOrder order,
               void* row) {
  visit(dtype, [&]<class T>(T) {
    if constexpr (std::is_floating_point_v<T>) {
      const auto* sorted = static_cast<const OrderKey<T>*>(keys);
      const auto put = [&](const std::vector<std::byte>& list, T like) {
        const auto first = std::lower_bound(sorted, sorted + n, oriented(order_key(like), order)) - sorted;
        if (!list.empty()) std::memcpy(static_cast<T*>(row) + first, list.data(), list.size());
      };
      put(alike.zeros, T(0));
      put(alike.nans, std::numeric_limits<T>::quiet_NaN());
    }
  });
}

}  // namespace tessera::kernels
