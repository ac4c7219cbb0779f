#include "kernels/sort/keys_of_row.hpp"

#include <type_traits>

namespace tessera::kernels {

void read_keys(Dtype dtype, const void* row, std::int64_t n, SortOrder order, void* keys) {
  visit(dtype, [&]<class T>(T) {
    const T* from = static_cast<const T*>(row);
    auto* to = static_cast<decltype(order_key(T{}))*>(keys);
    for (std::int64_t i = 0; i < n; ++i) to[i] = oriented(order_key(from[i]), order);
  });
}

void write_integers(Dtype dtype, const void* keys, std::int64_t n, SortOrder order, void* row) {
  visit(dtype, [&]<class T>(T) {
    if constexpr (std::is_integral_v<T>) {
      const auto* from = static_cast<const OrderKey<T>*>(keys);
      T* to = static_cast<T*>(row);
      for (std::int64_t i = 0; i < n; ++i) {
        const auto key = oriented(from[i], order);
        if constexpr (std::is_same_v<T, bool>)
          to[i] = key != 0;
        else
          to[i] =
              static_cast<T>(order_key(static_cast<T>(key)));  // flipping the sign bit twice gives it back
      }
    }
  });
}

}  // namespace tessera::kernels
