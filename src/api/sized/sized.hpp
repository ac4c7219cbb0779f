// Helpers of the functions of ops/sized.hpp.
#pragma once
#include <tessera/ops/sized.hpp>

#include <source_location>

#include "ops/index/compress.hpp"

namespace tessera {

// The number of true elements of the mask: read from the values, unless the options give a size.
// ArgumentError in a trace.
std::int64_t size_of_chosen(const Array& mask, const SizedOptions&, std::source_location where);

Array places(std::int64_t n);  // 0 .. n - 1, int32 if that suffices
Array flattened(const Array& x);
Array as_mask(const Array& x);  // true for nonzero elements
ScalarValue fill_of(const SizedOptions&, Dtype);

}  // namespace tessera
