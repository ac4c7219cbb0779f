/// @file
/// Layouts of arrays, and their values.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/array/handle.hpp>
#include <tessera/array/host.hpp>

namespace tessera {

/// @name Placement
/// Not collective: these record.
/// @{

/// x on a sharding, a mesh and spec, or one device; the result is committed. Changes any layout to any other,
/// also on other meshes, by the cheaper of a chain of collectives and one direct exchange; nothing is
/// gathered and then split again. An uncommitted x is computed there directly. ShardingError for a spec that
/// does not fit the shape.
[[nodiscard]] Array device_put(Operand x, Sharding sharding);
[[nodiscard]] Array device_put(Operand x, Mesh mesh, PartitionSpec spec);
[[nodiscard]] Array device_put(Operand x, Device device);
/// Inside jit: a layout that the planner must give x, and may use for x's operands. Outside: device_put.
/// P::automatic (only inside jit): the planner searches for the layout, or imposes none if none helps.
[[nodiscard]] Array with_sharding_constraint(Operand x, Sharding sharding);
[[nodiscard]] Array with_sharding_constraint(Operand x, AutomaticSpec);
/// @}

/// @name Values
/// Reading a value computes it. LinAlgError, NanError and MemoryError (more than a rank may use) are raised
/// on every rank of the array. ArgumentError inside a traced function, where values are unknown.
/// @{

/// Computes the arrays together. Collective over the ranks of their meshes (all ranks for uncommitted ones);
/// other ranks return at once. Sends what the plans contain, and a few bytes of agreement. See tree.hpp for
/// several trees.
void eval(const std::vector<Array>& arrays, std::source_location where = std::source_location::current());
/// The whole value on every rank. Collective over all ranks: gathers x everywhere.
[[nodiscard]] HostArray to_host(const Array& x, std::source_location where = std::source_location::current());
/// NumPy-like text; the corners of large arrays. Gathers the displayed elements. Collective over all ranks.
std::string to_string(const Array& x, std::source_location where = std::source_location::current());
/// Writes to_string once per job, by rank 0. Collective over all ranks.
void print(const Array& x, std::source_location where = std::source_location::current());
std::ostream& operator<<(std::ostream&, const Array&);
/// @}

namespace detail {
const std::byte* local_bytes(const Array&, Dtype, std::int64_t& elements, std::source_location);
void item_bytes(const Array&, Dtype, void* out, std::source_location);
}  // namespace detail
/// The single element of an array of size 1, converted to T. One number is sent to each rank. Collective over
/// all ranks. ShapeError for other sizes.
template <class T> T item(const Array& x, std::source_location where = std::source_location::current()) {
  T value{};
  detail::item_bytes(x, dtype_of<T>(), &value, where);
  return value;
}
/// to_vector<bool>(x).
std::vector<bool> to_bool_vector(const Array& x,
                                 std::source_location where = std::source_location::current());
/// The whole value on every rank, converted to a dtype. Collective over all ranks.
[[nodiscard]] HostArray to_host(const Array& x, Dtype dtype,
                                std::source_location where = std::source_location::current());
/// All elements in row-major order, converted to T. Collective over all ranks: gathers x everywhere.
template <class T>
std::vector<T> to_vector(const Array& x, std::source_location where = std::source_location::current()) {
  if constexpr (std::is_same_v<T, bool>)
    return to_bool_vector(x, where);
  else {
    const HostArray host = to_host(x, dtype_of<T>(), where);
    const auto values = host.as<T>();
    return std::vector<T>(values.begin(), values.end());
  }
}
template <class T> T Array::item(std::source_location where) const { return tessera::item<T>(*this, where); }
template <class T> std::vector<T> Array::to_vector(std::source_location where) const {
  return tessera::to_vector<T>(*this, where);
}
/// This rank's block, row-major and without a copy; empty if it holds none. Valid while a handle on x exists,
/// also after x is donated or deleted: the memory is freed with the last handle. Computes x. Collective over
/// the ranks of x. DtypeError unless T is the element type.
template <class T>
std::span<const T> local(const Array& x, std::source_location where = std::source_location::current()) {
  std::int64_t elements = 0;
  const std::byte* data = detail::local_bytes(x, dtype_of<T>(), elements, where);
  return {reinterpret_cast<const T*>(data), static_cast<std::size_t>(elements)};
}
/// The same for a temporary, local<float>(x * 2): the result keeps the memory alive.
template <class T>
KeptValues<T> local(const Array&& x, std::source_location where = std::source_location::current()) {
  const std::span<const T> values = local<T>(x, where);
  return {x.node(), values.data(), values.size()};
}

}  // namespace tessera
