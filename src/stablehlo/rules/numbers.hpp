// Numbers in the dtype of an array, and what XLA's functions of numbers mean where tessera's differ.
#pragma once
#include <tessera/ops.hpp>
#include <tessera/ops/arrange.hpp>

#include <cstdint>

namespace tessera::stablehlo {

Array number_of(double value, Dtype);
Array number_of(std::int64_t value, Dtype);
inline Array number_like(double value, const Array& x) { return number_of(value, x.dtype()); }
inline Array number_like(std::int64_t value, const Array& x) { return number_of(value, x.dtype()); }
inline Array number_like(int value, const Array& x) { return number_of(std::int64_t{value}, x.dtype()); }

Array lowest_of(Dtype);   // the neutral element of a maximum: -inf, the least integer, false
Array highest_of(Dtype);  // of a minimum

// NaN of either is kept; complex numbers by real, then imaginary part.
Array larger(const Array& a, const Array& b);
Array smaller(const Array& a, const Array& b);
// Integers that are ordered as IEEE's total order of the floats is: -NaN, -inf, ..., -0, 0, ..., inf, NaN.
Array total_order_key(const Array& x);
Array from_total_order_key(const Array& key, Dtype);
Array bits_of(const Array& x, bool is_signed = false);  // as an integer of the same width
// n elements of a range along dim d of a shape, repeated along the others.
Array range_along(const Shape& shape, int d, Dtype);
Array adjoint(const Array& matrices);
// Indices as int32 or int64: unsigned ones keep their values where these fit.
Array as_index(const Array& index);

}  // namespace tessera::stablehlo
