// Sorting and searching rows of dense (rows x n) memory. Order is NumPy's: NaN after everything, -0 equals
// 0, complex lexicographic, false before true. Every sort is stable; descending keeps the order of equals
// too, and puts NaN first.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>
#include <span>

namespace tessera::kernels {

struct SortOrder {
  bool descending = false;
};

void sort_rows(Dtype, const void* data, std::int64_t rows, std::int64_t n, SortOrder,
               void* out);  // out may be data
void argsort_rows(Dtype, const void* data, std::int64_t rows, std::int64_t n, SortOrder, std::int64_t* out);

// The positions, from `first` on, of each row's elements in sorted order, and in that order the unsigned
// numbers of dtype_of_keys(dtype) that are ordered as the elements. Not for complex numbers.
Dtype dtype_of_keys(Dtype);
void argsort_keys(Dtype, const void* data, std::int64_t rows, std::int64_t n, std::int64_t first, void* keys,
                  std::int64_t* positions);

// Sorts n keys in place and carries a 64-bit payload with each.
void sort_pairs(Dtype, void* keys, std::int64_t* payload, std::int64_t n, SortOrder);

// Merges sorted runs [offsets[i], offsets[i+1]) into out; equals keep the order of the runs. payload may be
// null on both sides.
void merge_runs(Dtype, const void* keys, const std::int64_t* payload, std::span<const std::int64_t> offsets,
                SortOrder, void* keys_out, std::int64_t* payload_out);

// Positions in `sorted` (ascending, n elements) where each value would go: before its equals (left) or after
// them (right).
void searchsorted(Dtype, const void* sorted, std::int64_t n, const void* values, std::int64_t count,
                  bool right, std::int64_t* out);

// How many of n float32 or float64 values lie at or above each edge (ascending) and below the next; in the
// last place how many are the last edge. NaN, and what lies outside, counts nowhere.
void count_bins(Dtype, const void* edges, std::int64_t edge_count, const void* values, std::int64_t n,
                std::int32_t* out);

// The k largest of each row in descending order, the first of equals first; NaN counts as largest. indices
// are positions in the row.
void top_k_rows(Dtype, const void* data, std::int64_t rows, std::int64_t n, std::int64_t k, void* values_out,
                std::int64_t* index_out);

}  // namespace tessera::kernels
