/// @file
/// Creating arrays.
///
/// Computed arrays (zeros, arange, ...) and arrays given alike on every rank (array) are uncommitted: each
/// rank computes or keeps only its own block, in the layout of the consumer, and nothing is sent. Not
/// collective, except for the two functions at the end. ShapeError for negative extents, and if the bytes of
/// a shape do not fit 64 bits.
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/array/handle.hpp>
#include <tessera/array/host.hpp>
#include <tessera/error.hpp>

namespace tessera {

namespace detail {
[[noreturn]] void throw_ragged(std::size_t row, std::size_t values, std::size_t width, std::source_location,
                               const char* part = "row", const char* of = "values");
template <class T> void append_row(std::initializer_list<T> row, std::size_t width, std::vector<T>& values,
                                   std::source_location where) {
  if (row.size() != width) throw_ragged(values.size() / (width ? width : 1), row.size(), width, where);
  values.insert(values.end(), row.begin(), row.end());
}
// The dtype of plain numbers without one, as in NumPy and JAX (without x64).
template <class T> constexpr Dtype dtype_of_number() {
  if constexpr (std::is_same_v<T, bool>)
    return bool_;
  else if constexpr (std::is_integral_v<T>)
    return int32;
  else if constexpr (std::is_floating_point_v<T>)
    return float32;
  else
    return complex64;
}
}  // namespace detail

/// A real number: neither bool nor complex.
template <class T>
concept Number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
namespace detail {
// Saturates to the largest 64-bit integer: a range that long is then refused for its length.
template <std::integral I> constexpr std::int64_t whole(I value) {
  return std::in_range<std::int64_t>(value) ? static_cast<std::int64_t>(value)
                                            : std::numeric_limits<std::int64_t>::max();
}
}  // namespace detail

/// @name With one value
/// @{

/// Zeros.
[[nodiscard]] Array zeros(Shape shape, Dtype dtype = float32,
                          std::source_location where = std::source_location::current());
/// Ones.
[[nodiscard]] Array ones(Shape shape, Dtype dtype = float32,
                         std::source_location where = std::source_location::current());
/// full with the value as bytes, for callers that know its dtype only at run time.
[[nodiscard]] Array full_from_host(Shape shape, const void* element, Dtype of_element, Dtype dtype,
                                   const char* call, std::source_location where);
/// An array with one value everywhere. A number is converted to the dtype; by default int32 for integers,
/// float32 for floating point, bool for bool, complex64 for complex numbers. An array broadcasts.
/// ArgumentError for an integer that does not fit the dtype.
template <class T> [[nodiscard]] Array full(Shape shape, T value, Dtype dtype = detail::dtype_of_number<T>(),
                                            std::source_location where = std::source_location::current()) {
  return full_from_host(std::move(shape), &value, dtype_of<T>(), dtype, "full", where);
}
/// An array's value, broadcast to the shape.
[[nodiscard]] Array full(Shape shape, const Array& value,
                         std::source_location where = std::source_location::current());
/// Zeros with x's shape and dtype.
[[nodiscard]] Array zeros_like(const Operand& x);
/// Ones with x's shape and dtype.
[[nodiscard]] Array ones_like(const Operand& x);
/// An array of the shape and dtype of `like`, filled with the value.
template <class T> [[nodiscard]] Array full_like(const Operand& like, T value) {
  return full_from_host(like.array.shape(), &value, dtype_of<T>(), like.array.dtype(), "full_like",
                        like.where);
}
/// The identity matrix; or n by m with ones on diagonal k. ShapeError for negative sizes.
[[nodiscard]] Array eye(std::int64_t n, Dtype dtype = float32,
                        std::source_location where = std::source_location::current());
[[nodiscard]] Array eye(std::int64_t n, std::int64_t m, int k = 0, Dtype dtype = float32,
                        std::source_location where = std::source_location::current());
/// @}

/// @name Ranges
/// @{

/// arange with a dtype that is known only at run time.
[[nodiscard]] Array arange_of(double start, double stop, double step, Dtype dtype,
                              std::source_location where = std::source_location::current());
[[nodiscard]] Array arange_of(std::int64_t start, std::int64_t stop, std::int64_t step, Dtype dtype,
                              std::source_location where = std::source_location::current());
/// start, start + step, ... before stop; by default from 0 in steps of 1. The numbers may have different C++
/// types. The default dtype is int32 for C++ integers and float32 if any is of floating point; with an
/// integer dtype, floating-point numbers are truncated towards 0. ArgumentError for a step of 0, NaN, values
/// that do not fit the dtype, or more than 2^63 elements.
template <Number A, Number B, Number C>
[[nodiscard]] Array arange(A start, B stop, C step, Dtype dtype,
                           std::source_location where = std::source_location::current()) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B> && std::is_integral_v<C>)
    return arange_of(detail::whole(start), detail::whole(stop), detail::whole(step), dtype, where);
  else
    return arange_of(static_cast<double>(start), static_cast<double>(stop), static_cast<double>(step), dtype,
                     where);
}
template <Number A, Number B, Number C>
[[nodiscard]] Array arange(A start, B stop, C step,
                           std::source_location where = std::source_location::current()) {
  return arange(start, stop, step, detail::dtype_of_number<std::common_type_t<A, B, C>>(), where);
}
template <Number A, Number B>
[[nodiscard]] Array arange(A start, B stop, Dtype dtype,
                           std::source_location where = std::source_location::current()) {
  return arange(start, stop, 1, dtype, where);
}
template <Number A, Number B>
[[nodiscard]] Array arange(A start, B stop, std::source_location where = std::source_location::current()) {
  return arange(start, stop, 1, where);
}
template <Number T> [[nodiscard]] Array arange(T stop, Dtype dtype,
                                               std::source_location where = std::source_location::current()) {
  return arange(0, stop, 1, dtype, where);
}
template <Number T>
[[nodiscard]] Array arange(T stop, std::source_location where = std::source_location::current()) {
  return arange(0, stop, 1, where);
}
/// num values from start to stop, both included, float32. ArgumentError for a negative num.
[[nodiscard]] Array linspace(double start, double stop, std::int64_t num = 50,
                             std::source_location where = std::source_location::current());
/// 50 values in a dtype.
[[nodiscard]] Array linspace(double start, double stop, Dtype dtype,
                             std::source_location where = std::source_location::current());
/// The same in a dtype; integers are rounded down. Without the end point the values stop one step before it.
[[nodiscard]] Array linspace(double start, double stop, std::int64_t num, Dtype dtype, bool endpoint = true,
                             std::source_location where = std::source_location::current());
/// @}

/// @name From values
/// The values must be the same on every rank. For data that differ between ranks use
/// make_array_from_process_local_data.
/// @{

/// A copy of dense row-major memory.
[[nodiscard]] Array array_from_host(const void* values, Shape shape, Dtype dtype,
                                    std::source_location where = std::source_location::current());
namespace detail {
[[nodiscard]] Array array_as(const Array& values, Dtype dtype, std::source_location where);
}  // namespace detail
/// From a host array, a span or vector with a shape, a vector, or braces nested up to three levels:
/// array({{1.f, 2.f}, {3.f, 4.f}}). The dtype is the C++ type's. ShapeError for rows of different lengths or
/// values that do not fill the shape.
[[nodiscard]] Array array(const HostArray& host,
                          std::source_location where = std::source_location::current());
template <class T> [[nodiscard]] Array array(std::span<const T> values, Shape shape,
                                             std::source_location where = std::source_location::current()) {
  detail::check_count(static_cast<std::int64_t>(values.size()), shape, "array", where);
  return array(HostArray(values, shape), where);
}
template <class T> [[nodiscard]] Array array(const std::vector<T>& values, Shape shape,
                                             std::source_location where = std::source_location::current()) {
  detail::check_count(static_cast<std::int64_t>(values.size()), shape, "array", where);
  return array(HostArray(values, shape), where);
}
template <class T> [[nodiscard]] Array array(const std::vector<T>& values,
                                             std::source_location where = std::source_location::current()) {
  return array(HostArray(values, Shape{static_cast<std::int64_t>(values.size())}), where);
}
template <class T> [[nodiscard]] Array array(std::initializer_list<T> values,
                                             std::source_location where = std::source_location::current()) {
  return array(std::vector<T>(values), where);
}
/// array(2.f): a number, as an array without dimensions, of the C++ type's dtype or of the one given.
template <class T>
requires(std::is_arithmetic_v<T>) [[nodiscard]] Array
    array(T number, std::source_location where = std::source_location::current()) {
  return full_from_host({}, &number, dtype_of<T>(), dtype_of<T>(), "array", where);
}
template <class T, std::same_as<Dtype> D>
requires(std::is_arithmetic_v<T>) [[nodiscard]] Array
    array(T number, D dtype, std::source_location where = std::source_location::current()) {
  return full_from_host({}, &number, dtype_of<T>(), dtype, "array", where);
}
/// array({1., 2.}, {2, 1}): values in row-major order, with their shape.
template <class T> [[nodiscard]] Array array(std::initializer_list<T> values, Shape shape,
                                             std::source_location where = std::source_location::current()) {
  return array(std::vector<T>(values), std::move(shape), where);
}
/// array({1, 2, 3}, float64): converted to a dtype.
template <class T, std::same_as<Dtype> D>
[[nodiscard]] Array array(std::initializer_list<T> values, D dtype,
                          std::source_location where = std::source_location::current()) {
  return detail::array_as(array(std::vector<T>(values), where), dtype, where);
}
template <class T, std::same_as<Dtype> D>
[[nodiscard]] Array array(const std::vector<T>& values, D dtype,
                          std::source_location where = std::source_location::current()) {
  return detail::array_as(array(values, where), dtype, where);
}
template <class T, std::same_as<Dtype> D>
[[nodiscard]] Array array(std::initializer_list<std::initializer_list<T>> rows, D dtype,
                          std::source_location where = std::source_location::current()) {
  std::vector<T> values;
  const auto width = rows.size() ? rows.begin()->size() : 0;
  for (const auto& row : rows) detail::append_row(row, width, values, where);
  return detail::array_as(array(values, Shape(std::array{rows.size(), width}), where), dtype, where);
}
template <class T> [[nodiscard]] Array array(std::initializer_list<std::initializer_list<T>> rows,
                                             std::source_location where = std::source_location::current()) {
  std::vector<T> values;
  const auto width = rows.size() ? rows.begin()->size() : 0;
  for (const auto& row : rows) detail::append_row(row, width, values, where);
  return array(values, Shape(std::array{rows.size(), width}), where);
}
template <class T>
[[nodiscard]] Array array(std::initializer_list<std::initializer_list<std::initializer_list<T>>> planes,
                          std::source_location where = std::source_location::current()) {
  std::vector<T> values;
  const auto height = planes.size() ? planes.begin()->size() : 0;
  const auto width = height ? planes.begin()->begin()->size() : 0;
  for (const auto& plane : planes) {
    if (plane.size() != height)
      detail::throw_ragged(values.size() / std::max<std::size_t>(width * height, 1), plane.size(), height,
                           where, "plane", "rows");
    for (const auto& row : plane) detail::append_row(row, width, values, where);
  }
  return array(values, Shape(std::array{planes.size(), height, width}), where);
}
/// @}

/// @name From each rank's own blocks
/// @{

/// A committed array whose blocks the callback creates: it is called with the index range of this process's
/// block and returns a block of that shape; it is not called on a process outside of the sharding, which gets
/// the same handle. Collective over all ranks; sends a few bytes of agreement, no blocks. Raised on every
/// rank: ShapeError for a block of another shape, DtypeError for dtypes that differ, ArgumentError with the
/// text of an exception from the callback.
[[nodiscard]] Array make_array_from_callback(Shape shape, Sharding sharding,
                                             std::function<HostArray(const Index&)> block,
                                             std::source_location where = std::source_location::current());
/// A committed array of blocks that the processes provide, including uneven and empty ones; the block of a
/// process outside of the sharding is ignored. The global shape is derived from the blocks unless given.
/// Collective over all ranks; sends the blocks' shapes, no blocks. Errors as make_array_from_callback.
[[nodiscard]] Array make_array_from_process_local_data(
    Sharding sharding, HostArray block, std::optional<Shape> global = std::nullopt,
    std::source_location where = std::source_location::current());
/// @}

}  // namespace tessera
