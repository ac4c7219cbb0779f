// Reduces a distributed array to the numbers that a picture can show, on rank 0 only.
#pragma once
#include <tessera/array.hpp>

#include "viz/data/grid.hpp"

namespace tessera::viz {

enum class Combine { mean, least, most };

// At most rows x columns numbers of an array of one or two dims (one: a row), each combined from the elements
// of its part. Empty on the other ranks. Computes x; each rank sends only its share of the result. Collective
// over all ranks. DtypeError for complex numbers, ShapeError for other numbers of dims.
DataGrid sampled(const Array& x, std::int64_t rows, std::int64_t columns, Combine = Combine::mean);

// The least and largest finite element, on every rank; nullopt if there is none.
std::optional<ValueRange> finite_range(const Array& x);
// The number of elements in each bin, on every rank.
std::vector<std::int64_t> counts_in_bins(const Array& x, const ValueRange&, int bins);

}  // namespace tessera::viz
