// Making arrays. What is computed (zeros, arange, ...) or the same on every rank (array) is uncommitted: it is
// computed in the layout of whoever consumes it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/array/handle.hpp>
#include <tessera/array/host.hpp>
#include <tessera/error.hpp>

namespace tessera {

Array zeros(Shape, Dtype = float32);
Array ones(Shape, Dtype = float32);
Array full_from_host(Shape, const void* element, Dtype of_element, Dtype);
template <class T> Array full(Shape shape, T value, Dtype dtype = float32) {
  return full_from_host(std::move(shape), &value, dtype_of<T>(), dtype);
}
Array full(Shape, const Array& value);
Array eye(std::int64_t n, Dtype = float32);
Array eye(std::int64_t n, std::int64_t m, int k = 0, Dtype = float32);
Array arange_of(double start, double stop, double step, Dtype);
Array arange_of(std::int64_t start, std::int64_t stop, std::int64_t step, Dtype);
// int32 for C++ integers, float32 for floating point. ArgumentError for a step of 0, NaN or more than 2^63
// elements.
template <class T> Array arange(T start, T stop, T step) {
  if constexpr (std::is_integral_v<T>)
    return arange_of(std::int64_t{start}, std::int64_t{stop}, std::int64_t{step}, int32);
  else
    return arange_of(double{start}, double{stop}, double{step}, float32);
}
template <class T> Array arange(T start, T stop) { return arange(start, stop, T{1}); }
template <class T> Array arange(T stop) { return arange(T{0}, stop, T{1}); }
Array linspace(double start, double stop, std::int64_t num = 50);
Array zeros_like(const Array&);
Array ones_like(const Array&);
template <class T> Array full_like(const Array& like, T value) {
  return full_from_host(like.shape(), &value, dtype_of<T>(), like.dtype());
}
// Same values on every rank.
Array array_from_host(const void* values, Shape, Dtype);
Array array(const HostArray&);
template <class T> Array array(std::span<const T> values, Shape shape) {
  return array(HostArray(values, shape));
}
template <class T> Array array(const std::vector<T>& values, Shape shape) {
  return array(HostArray(values, shape));
}
template <class T> Array array(const std::vector<T>& values) {
  return array(HostArray(values, Shape{static_cast<std::int64_t>(values.size())}));
}
template <class T> Array array(std::initializer_list<T> values) {
  return array(HostArray(std::vector<T>(values), Shape{static_cast<std::int64_t>(values.size())}));
}
template <class T> Array array(std::initializer_list<std::initializer_list<T>> rows) {
  std::vector<T> values;
  const auto width = rows.size() ? rows.begin()->size() : 0;
  for (const auto& row : rows) {
    if (row.size() != width)
      throw ShapeError("array: row " + std::to_string(values.size() / (width ? width : 1)) + " has " +
                       std::to_string(row.size()) + " values, the first row has " + std::to_string(width));
    values.insert(values.end(), row.begin(), row.end());
  }
  return array(
      HostArray(values, Shape{static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(width)}));
}
// Calls `block` once per block that this process holds. ShapeError/DtypeError, raised on every rank, if a
// block does not have the shape asked for. Collective over the sharding's devices.
Array make_array_from_callback(Shape, Sharding, std::function<HostArray(const Index&)> block);
// The global shape is worked out from the blocks unless given. Collective.
Array make_array_from_process_local_data(Sharding, HostArray block,
                                         std::optional<Shape> global = std::nullopt);

}  // namespace tessera
