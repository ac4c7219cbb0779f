// Sorting and searching rows of dense (rows x n) memory. The order is NumPy's: NaN last, -0 equals 0, complex
// lexicographic, false before true. Every sort is stable; descending order keeps the order of equals too, and
// puts NaN first.
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
// P: std::int32_t, if n fits it, or std::int64_t.
template <class P>
void argsort_rows(Dtype, const void* data, std::int64_t rows, std::int64_t n, SortOrder, P* out);

// Each row's argsort, with positions counted from `first`, and its sorted keys: unsigned numbers of
// dtype_of_keys(dtype) in the elements' order. Not for complex numbers.
Dtype dtype_of_keys(Dtype);
void argsort_keys(Dtype, const void* data, std::int64_t rows, std::int64_t n, std::int64_t first, void* keys,
                  std::int64_t* positions);

// Sorts n keys in place and carries a payload with each (P: std::uint32_t or std::int64_t).
template <class P> void sort_pairs(Dtype, void* keys, P* payload, std::int64_t n, SortOrder);

// Merges sorted runs [offsets[i], offsets[i+1]) into out; equals keep the order of the runs. payload may be
// null on both sides.
void merge_runs(Dtype, const void* keys, const std::int64_t* payload, std::span<const std::int64_t> offsets,
                SortOrder, void* keys_out, std::int64_t* payload_out);

// The position in `sorted` (ascending, n elements) at which each value would be inserted: before its equals
// (left) or after them (right).
void searchsorted(Dtype, const void* sorted, std::int64_t n, const void* values, std::int64_t count,
                  bool right, std::int64_t* out);

// Counts n float32 or float64 values per bin [edge, next edge) for ascending edges; the last element counts
// values equal to the last edge. NaN and values out of range are not counted.
void count_bins(Dtype, const void* edges, std::int64_t edge_count, const void* values, std::int64_t n,
                std::int32_t* out);

// The k largest of each row in descending order, the first of equals first; NaN counts as largest. indices
// are positions in the row.
void top_k_rows(Dtype, const void* data, std::int64_t rows, std::int64_t n, std::int64_t k, void* values_out,
                std::int64_t* index_out);

}  // namespace tessera::kernels
