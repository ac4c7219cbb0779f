// Parts of the functions of ops/sized.hpp.
#pragma once
#include <tessera/ops/sized.hpp>

#include <source_location>

#include "ops/index/compress.hpp"

namespace tessera {

// How many elements of the mask are true: read, unless the options say a size. ArgumentError in a trace.
std::int64_t size_of_chosen(const Array& mask, const SizedOptions&, std::source_location where);

Array places(std::int64_t n);  // 0 .. n - 1, int32 where that is enough
Array flattened(const Array& x);
Array as_mask(const Array& x);  // what is not 0
ScalarValue fill_of(const SizedOptions&, Dtype);

}  // namespace tessera
