// A row's extreme and its place, found by vectors.
#pragma once
#include <cstdint>
#include <type_traits>

#include "kernels/reduce/reduce_rows.hpp"

namespace tessera::kernels {

// bool, integers but those of 64 bits without sign, float32 and float64.
template <class T> inline constexpr bool has_extreme_place =
    std::is_arithmetic_v<T> && !std::is_same_v<T, std::uint64_t>;

// The index of the first NaN among n > 0 elements, or else of the first that is the largest (smallest). Reads
// no further than a block beyond an element that no other can surpass, such as a true one.
std::int64_t extreme_place(bool max, Dtype, const void* x, std::int64_t n);

// The max (min) of rows of float32, float64, int32 or int64; the first NaN of a row that has one.
RowReduceFn find_extreme_of_rows(bool max, Dtype);

}  // namespace tessera::kernels
