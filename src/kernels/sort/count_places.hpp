// Counts how often each number occurs in an array of integers.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>

namespace tessera::kernels {

// out[p] = how many of n integers equal p, for p below length; others are not counted.
void count_places(Dtype, const void* x, std::int64_t n, std::int64_t length, std::int32_t* out);

}  // namespace tessera::kernels
