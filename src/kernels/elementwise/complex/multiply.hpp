// Products and conjugates of complex numbers, several at a time.
#pragma once
#include <cstdint>

namespace tessera::kernels {

// Maps (elementwise.hpp) of complex64 and complex128.
void multiply_complex64(const void* const* in, void* out, std::int64_t n);
void multiply_complex128(const void* const* in, void* out, std::int64_t n);
void conj_complex64(const void* const* in, void* out, std::int64_t n);
void conj_complex128(const void* const* in, void* out, std::int64_t n);

}  // namespace tessera::kernels
