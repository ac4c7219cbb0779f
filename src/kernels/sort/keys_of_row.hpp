// Conversion of rows to sort keys and back. Sorting has five types of keys for all dtypes.
#pragma once
#include <tessera/dtype.hpp>

#include <vector>

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

// Elements of a row that have equal keys but different bits, in order: its zeros if one of them is -0, and
// its NaNs.
struct Alike {
  std::vector<std::byte> zeros, nans;
};
Alike alike_of(Dtype, const void* row, std::int64_t n);
// Writes them to their positions in the row that write_elements made from the sorted keys.
void put_alike(Dtype, const Alike&, const void* keys, std::int64_t n, SortOrder, void* row);

}  // namespace tessera::kernels
