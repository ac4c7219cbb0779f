#include "stablehlo/rules/numbers.hpp"

#include <tessera/control/lax.hpp>

#include <limits>

namespace tessera::stablehlo {

Array number_of(double value, Dtype dtype) {
  if (is_half(dtype)) return astype(full({}, static_cast<float>(value)), dtype);
  if (is_complex(dtype)) return astype(full({}, value, real_dtype(dtype)), dtype);
  if (is_integer(dtype)) return full({}, static_cast<std::int64_t>(value), dtype);
  return full({}, value, dtype);
}

Array number_of(std::int64_t value, Dtype dtype) {
  if (dtype == uint64) return full({}, static_cast<std::uint64_t>(value), dtype);
  if (is_integer(dtype)) return full({}, value, dtype);
  if (is_bool(dtype)) return full({}, value != 0, dtype);
  return number_of(static_cast<double>(value), dtype);
}

Array lowest_of(Dtype dtype) {
  if (is_bool(dtype)) return full({}, false);
  if (is_unsigned_integer(dtype)) return number_of(std::int64_t{0}, dtype);
  if (is_integer(dtype))
    return number_of(std::numeric_limits<std::int64_t>::min() >> (64 - 8 * itemsize(dtype)), dtype);
  return number_of(-std::numeric_limits<double>::infinity(), dtype);
}

Array highest_of(Dtype dtype) {
  if (is_bool(dtype)) return full({}, true);
  const auto unused = 64 - 8 * itemsize(dtype);
  if (is_unsigned_integer(dtype)) return full({}, std::numeric_limits<std::uint64_t>::max() >> unused, dtype);
  if (is_integer(dtype)) return number_of(std::numeric_limits<std::int64_t>::max() >> unused, dtype);
  return number_of(std::numeric_limits<double>::infinity(), dtype);
}

namespace {

Array is_complex_less(const Array& a, const Array& b) {
  return less(real(a), real(b)) | (equal(real(a), real(b)) & less(imag(a), imag(b)));
}

}  // namespace

Array larger(const Array& a, const Array& b) {
  return is_complex(a.dtype()) ? where(is_complex_less(a, b), b, a) : maximum(a, b);
}
Array smaller(const Array& a, const Array& b) {
  return is_complex(a.dtype()) ? where(is_complex_less(b, a), b, a) : minimum(a, b);
}

Array bits_of(const Array& x, bool is_signed) {
  constexpr Dtype signed_ones[] = {int8, int16, int32, int64},
                  unsigned_ones[] = {uint8, uint16, uint32, uint64};
  const auto bytes = itemsize(x.dtype());
  const int n = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
  const Dtype to = is_signed ? signed_ones[n] : unsigned_ones[n];
  return x.dtype() == to ? x : bitcast_convert_type(x, to);
}

Array total_order_key(const Array& x) {
  const Array bits = bits_of(x, true);
  const auto largest = std::numeric_limits<std::int64_t>::max() >> (64 - 8 * itemsize(x.dtype()));
  return where(less(bits, number_like(0, bits)), bitwise_xor(bits, number_like(largest, bits)), bits);
}
Array from_total_order_key(const Array& key, Dtype dtype) {
  const auto largest = std::numeric_limits<std::int64_t>::max() >> (64 - 8 * itemsize(dtype));
  const Array bits = where(less(key, number_like(0, key)), bitwise_xor(key, number_like(largest, key)), key);
  return bitcast_convert_type(bits, dtype);
}

Array range_along(const Shape& shape, int d, Dtype dtype) {
  const auto n = shape[static_cast<std::size_t>(d)];
  const Dtype counted = is_integer(dtype) ? dtype : n > (std::int64_t{1} << 31) ? int64 : int32;
  std::vector<std::int64_t> extents(shape.size(), 1);
  extents[static_cast<std::size_t>(d)] = n;
  // The range wraps around for narrow integers, as XLA's does.
  const Dtype wide = itemsize(counted) < 4 ? int32 : counted;
  Array line = reshape(arange_of(std::int64_t{0}, n, std::int64_t{1}, wide), Shape(extents));
  if (wide != dtype) line = astype(line, dtype);
  return line.shape() == shape ? line : broadcast_to(line, shape);
}

Array adjoint(const Array& x) {
  return is_complex(x.dtype()) ? conj(matrix_transpose(x)) : matrix_transpose(x);
}

Array as_index(const Array& index) {
  const Dtype dtype = index.dtype();
  if (dtype == int32 || dtype == int64) return index;
  if (dtype == uint64)
    return astype(minimum(index, full({}, std::numeric_limits<std::int64_t>::max(), uint64)), int64);
  return astype(index, dtype == uint32 ? int64 : int32);
}

}  // namespace tessera::stablehlo
