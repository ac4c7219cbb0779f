// Making arrays. What is computed (zeros, arange, ...) or the same on every rank (array) is uncommitted: it is
// computed in the layout of whoever consumes it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
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

Array zeros(Shape, Dtype = float32, std::source_location where = std::source_location::current());
Array ones(Shape, Dtype = float32, std::source_location where = std::source_location::current());
Array full_from_host(Shape, const void* element, Dtype of_element, Dtype, const char* call,
                     std::source_location);
template <class T> Array full(Shape shape, T value, Dtype dtype = float32,
                              std::source_location where = std::source_location::current()) {
  return full_from_host(std::move(shape), &value, dtype_of<T>(), dtype, "full", where);
}
Array full(Shape, const Array& value, std::source_location where = std::source_location::current());
Array eye(std::int64_t n, Dtype = float32, std::source_location where = std::source_location::current());
Array eye(std::int64_t n, std::int64_t m, int k = 0, Dtype = float32,
          std::source_location where = std::source_location::current());
Array arange_of(double start, double stop, double step, Dtype,
                std::source_location where = std::source_location::current());
Array arange_of(std::int64_t start, std::int64_t stop, std::int64_t step, Dtype,
                std::source_location where = std::source_location::current());
// int32 for C++ integers, float32 for floating point. ArgumentError for a step of 0, NaN or more than 2^63
// elements.
template <class T>
Array arange(T start, T stop, T step, std::source_location where = std::source_location::current()) {
  if constexpr (std::is_integral_v<T>)
    return arange_of(std::int64_t{start}, std::int64_t{stop}, std::int64_t{step}, int32, where);
  else
    return arange_of(double{start}, double{stop}, double{step}, float32, where);
}
template <class T>
Array arange(T start, T stop, std::source_location where = std::source_location::current()) {
  return arange(start, stop, T{1}, where);
}
template <class T> Array arange(T stop, std::source_location where = std::source_location::current()) {
  return arange(T{0}, stop, T{1}, where);
}
Array linspace(double start, double stop, std::int64_t num = 50,
               std::source_location where = std::source_location::current());
Array zeros_like(const Operand&);
Array ones_like(const Operand&);
template <class T> Array full_like(const Operand& like, T value) {
  return full_from_host(like.array.shape(), &value, dtype_of<T>(), like.array.dtype(), "full_like",
                        like.where);
}
namespace detail {
[[noreturn]] void throw_ragged(std::size_t row, std::size_t values, std::size_t width, std::source_location);
}
// Same values on every rank.
Array array_from_host(const void* values, Shape, Dtype,
                      std::source_location where = std::source_location::current());
Array array(const HostArray&, std::source_location where = std::source_location::current());
template <class T> Array array(std::span<const T> values, Shape shape,
                               std::source_location where = std::source_location::current()) {
  detail::check_count(static_cast<std::int64_t>(values.size()), shape, "array", where);
  return array(HostArray(values, shape), where);
}
template <class T> Array array(const std::vector<T>& values, Shape shape,
                               std::source_location where = std::source_location::current()) {
  detail::check_count(static_cast<std::int64_t>(values.size()), shape, "array", where);
  return array(HostArray(values, shape), where);
}
template <class T>
Array array(const std::vector<T>& values, std::source_location where = std::source_location::current()) {
  return array(HostArray(values, Shape{static_cast<std::int64_t>(values.size())}), where);
}
template <class T>
Array array(std::initializer_list<T> values, std::source_location where = std::source_location::current()) {
  return array(std::vector<T>(values), where);
}
template <class T> Array array(std::initializer_list<std::initializer_list<T>> rows,
                               std::source_location where = std::source_location::current()) {
  std::vector<T> values;
  const auto width = rows.size() ? rows.begin()->size() : 0;
  for (const auto& row : rows) {
    if (row.size() != width)
      detail::throw_ragged(values.size() / (width ? width : 1), row.size(), width, where);
    values.insert(values.end(), row.begin(), row.end());
  }
  return array(values, Shape{static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(width)},
               where);
}
// Calls `block` once per block that this process holds. ShapeError/DtypeError, raised on every rank, if a
// block does not have the shape asked for. Collective over the sharding's devices.
Array make_array_from_callback(Shape, Sharding, std::function<HostArray(const Index&)> block,
                               std::source_location where = std::source_location::current());
// The global shape is worked out from the blocks unless given. Collective.
Array make_array_from_process_local_data(Sharding, HostArray block,
                                         std::optional<Shape> global = std::nullopt,
                                         std::source_location where = std::source_location::current());

}  // namespace tessera
