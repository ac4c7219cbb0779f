#include "kernels/sort/keys_of_row.hpp"

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

}  // namespace tessera::kernels
