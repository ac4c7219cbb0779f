// Sorting works on five types of keys, whatever the dtype: a row becomes keys, and keys or positions become a
// row again.
#pragma once
#include <tessera/dtype.hpp>

#include <vector>

#include "kernels/sort/order_key.hpp"
#include "kernels/sort/sort.hpp"

namespace tessera::kernels {

// From a dtype to the type of its keys: visit_keys(dtype, []<class K>(K) { ... }).
template <class F> decltype(auto) visit_keys(Dtype dtype, F&& f) {
  if (is_complex(dtype)) return f(ComplexKey{});
  switch (itemsize(dtype)) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    default: return f(std::uint64_t{});
  }
}

// The keys of n elements, of the dtype's type of keys; where the order is descending, their complements.
void read_keys(Dtype, const void* row, std::int64_t n, SortOrder, void* keys);
// The elements that have these keys, but for complex numbers. Keys do not tell -0 from 0, nor one NaN from
// another: all are 0 and the same NaN.
void write_elements(Dtype, const void* keys, std::int64_t n, SortOrder, void* row);

// Elements of a row that keys do not tell apart, in order: its zeros if one of them is -0, and its NaN.
struct Alike {
  std::vector<std::byte> zeros, nans;
};
Alike alike_of(Dtype, const void* row, std::int64_t n);
// Puts them to their places in the row that write_elements has made of the sorted keys.
void put_alike(Dtype, const Alike&, const void* keys, std::int64_t n, SortOrder, void* row);

}  // namespace tessera::kernels
