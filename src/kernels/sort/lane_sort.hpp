// Sorts of many short rows at once, one row per vector lane.
#pragma once
#include <cstdint>

namespace tessera::kernels {

// Columns that are sorted together: those of 64 bytes.
template <class T> constexpr std::int64_t sorted_lanes = 64 / static_cast<std::int64_t>(sizeof(T));

// Rows of up to this many elements are sorted sooner as columns than one after the other; 0: none are.
std::int64_t longest_lane_sort();
// Sorts each column of (n, sorted_lanes) elements, none of them NaN; zeros get any sign. x: at 64 bytes.
void sort_lanes(float* x, std::int64_t n);
void sort_lanes(double* x, std::int64_t n);
void sort_lanes(std::int32_t* x, std::int64_t n);
void sort_lanes(std::uint32_t* x, std::int64_t n);
void sort_lanes(std::int64_t* x, std::int64_t n);
void sort_lanes(std::uint64_t* x, std::int64_t n);

// Whether NaN, -0 or an infinity is among n elements.
bool has_odd_floats(const float* x, std::int64_t n);
bool has_odd_floats(const double* x, std::int64_t n);

}  // namespace tessera::kernels
