// Division of complex numbers, several at a time.
#pragma once
#include <cstdint>

namespace tessera::kernels {

// Maps (elementwise.hpp) of complex64 and complex128: a / b by Smith's method, and 1 / b.
void divide_complex64(const void* const* in, void* out, std::int64_t n);
void divide_complex128(const void* const* in, void* out, std::int64_t n);
void reciprocal_complex64(const void* const* in, void* out, std::int64_t n);
void reciprocal_complex128(const void* const* in, void* out, std::int64_t n);

}  // namespace tessera::kernels
