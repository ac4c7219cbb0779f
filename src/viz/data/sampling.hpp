// From an array that is spread over ranks to what a picture can show of it, on rank 0 alone.
#pragma once
#include <tessera/array.hpp>

#include "viz/data/grid.hpp"

namespace tessera::viz {

enum class Combine { mean, least, most };

// At most rows x columns numbers of an array of one or two dims (one: a row), each combined from the
// elements of its part. Empty on the other ranks. Collective over all ranks; computes x; each rank sends
// its share of the result, no more. DtypeError for complex numbers, ShapeError for other numbers of dims.
Grid sampled(const Array& x, std::int64_t rows, std::int64_t columns, Combine = Combine::mean);

// The least and largest finite element, on every rank; nullopt where there is none.
std::optional<ValueRange> finite_range(const Array& x);
// How many elements lie in each of the bins, on every rank.
std::vector<std::int64_t> counts_in_bins(const Array& x, const ValueRange&, int bins);

}  // namespace tessera::viz
