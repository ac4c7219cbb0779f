// Sorts of short rows and merges of sorted rows of numbers without a payload, a vector at a time.
#pragma once
#include <cstdint>
#include <span>
#include <type_traits>

namespace tessera::kernels {

template <class T> inline constexpr bool has_vector_merge =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t> ||
    std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint64_t>;

// Two ascending runs, and where they are merged to; `out` is other memory.
template <class T> struct RunsToMerge {
  const T *left, *left_end, *right, *right_end;
  T* out;
};

// Merges each pair of runs. Elements that are equal must have equal bits, and none may be NaN.
void merge_by_vectors(std::span<RunsToMerge<float>, 4>);
void merge_by_vectors(std::span<RunsToMerge<double>, 4>);
void merge_by_vectors(std::span<RunsToMerge<std::int32_t>, 4>);
void merge_by_vectors(std::span<RunsToMerge<std::uint32_t>, 4>);
void merge_by_vectors(std::span<RunsToMerge<std::int64_t>, 4>);
void merge_by_vectors(std::span<RunsToMerge<std::uint64_t>, 4>);

// Rows of up to this many elements of 4 or 8 bytes are sorted sooner in vectors than by digits; 0: none are.
std::int64_t longest_vector_sort(std::size_t itemsize);
// Sorts n elements, a multiple of vector_sort_step, none of them NaN; `spare` is as long. Zeros get any sign.
constexpr std::int64_t vector_sort_step = 16;
void sort_by_vectors(float* x, float* spare, std::int64_t n);
void sort_by_vectors(double* x, double* spare, std::int64_t n);
void sort_by_vectors(std::int32_t* x, std::int32_t* spare, std::int64_t n);
void sort_by_vectors(std::uint32_t* x, std::uint32_t* spare, std::int64_t n);
void sort_by_vectors(std::int64_t* x, std::int64_t* spare, std::int64_t n);
void sort_by_vectors(std::uint64_t* x, std::uint64_t* spare, std::int64_t n);

}  // namespace tessera::kernels
