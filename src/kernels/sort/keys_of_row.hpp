// Conversion of rows to sort keys and back. Sorting has five types of keys for all dtypes.
#pragma once
#include <tessera/dtype.hpp>

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>
#include <vector>

#include "kernels/sort/lane_sort.hpp"
#include "kernels/sort/order_key.hpp"
#include "kernels/sort/sort.hpp"

namespace tessera::kernels {

// Dispatch from a dtype to its key type: visit_keys(dtype, []<class K>(K) { ... }).
template <class F> decltype(auto) visit_keys(Dtype dtype, F&& f) {
  if (is_complex(dtype)) return f(ComplexKey{});
  switch (itemsize(dtype)) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    default: return f(std::uint64_t{});
  }
}

// The keys of n elements, in the dtype's key type; complemented if the order is descending.
void read_keys(Dtype, const void* row, std::int64_t n, SortOrder, void* keys);
// The elements that have these keys (not for complex numbers). Keys do not distinguish -0 from 0, nor one NaN
// from another: all become 0 and the same NaN.
void write_elements(Dtype, const void* keys, std::int64_t n, SortOrder, void* row);

// Elements of a row that are equal in order but may differ in bits, as they lie in the row: zeros and NaNs.
template <class T> struct Alike { std::vector<T> zeros, nans; };
// Whether NaN, -0 or an infinity is among n elements.
template <class T> bool has_alike_or_infinity(const T* x, std::int64_t n) {
  if constexpr (std::is_floating_point_v<T>) return has_odd_floats(x, n);
  return false;
}
template <class T> Alike<T> alike_of(const T* x, std::int64_t n) {
  Alike<T> alike;
  if (!has_alike_or_infinity(x, n)) return alike;
  constexpr std::int64_t piece = 256;
  for (std::int64_t i = 0; i < n; i += piece) {
    const std::span<const T> some(x + i, std::min(piece, n - i));
    OrderKey<T> found = 0;
    for (const T e : some) found |= (e == T(0) ? 1 : 0) | (e != e ? 1 : 0);
    if (found == 0) continue;
    std::ranges::copy_if(some, std::back_inserter(alike.zeros), [](T e) { return e == T(0); });
    std::ranges::copy_if(some, std::back_inserter(alike.nans), [](T e) { return e != e; });
  }
  return alike;
}
// Writes them to their places in the sorted row, whose first `count` elements are those that are not NaN.
template <class T> void put_alike(const Alike<T>& alike, SortOrder order, std::int64_t count, T* row) {
  if (!alike.zeros.empty()) {
    T* const first = order.descending ? std::lower_bound(row, row + count, T(0), std::greater<T>())
                                      : std::lower_bound(row, row + count, T(0));
    std::copy(alike.zeros.begin(), alike.zeros.end(), first);
  }
  if (alike.nans.empty()) return;
  if (order.descending) std::copy_backward(row, row + count, row + count + std::ssize(alike.nans));
  std::copy(alike.nans.begin(), alike.nans.end(), order.descending ? row : row + count);
}

}  // namespace tessera::kernels
