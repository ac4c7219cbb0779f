// A row's extreme and its place, found by vectors.
#pragma once
#include <cstdint>
#include <type_traits>

#include "kernels/reduce/reduce_rows.hpp"

namespace tessera::kernels {

template <class T> inline constexpr bool has_extreme_place =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t> ||
    std::is_same_v<T, std::int64_t>;

// The index of the first NaN among n > 0 elements, or else of the first that is the largest (smallest).
std::int64_t extreme_place(bool max, const float* x, std::int64_t n);
std::int64_t extreme_place(bool max, const double* x, std::int64_t n);
std::int64_t extreme_place(bool max, const std::int32_t* x, std::int64_t n);
std::int64_t extreme_place(bool max, const std::int64_t* x, std::int64_t n);

// The max (min) of rows of float32, float64, int32 or int64; the first NaN of a row that has one.
RowReduceFn find_extreme_of_rows(bool max, Dtype);

}  // namespace tessera::kernels
