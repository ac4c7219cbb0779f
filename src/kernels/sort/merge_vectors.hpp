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

// Rows of up to this many keys are sorted sooner by sort_by_vectors than by other means; 0: none are.
template <class K> std::int64_t longest_vector_sort();
template <> std::int64_t longest_vector_sort<std::uint32_t>();
template <> std::int64_t longest_vector_sort<std::uint64_t>();
// Sorts n keys, a multiple of vector_sort_step; `spare` is as long.
constexpr std::int64_t vector_sort_step = 16;
void sort_by_vectors(std::uint32_t* keys, std::uint32_t* spare, std::int64_t n);
void sort_by_vectors(std::uint64_t* keys, std::uint64_t* spare, std::int64_t n);

}  // namespace tessera::kernels
