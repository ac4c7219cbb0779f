/// @file
/// Where arrays lie, and their values.
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

/// x on a sharding, a mesh and spec, or one device; the result is committed. Any layout to any layout,
/// other meshes too, by the cheaper of a chain of collectives and one direct exchange; nothing is gathered
/// and cut again. An uncommitted x is computed there at once. ShardingError for a spec that does not fit
/// the shape.
[[nodiscard]] Array device_put(Operand x, Sharding sharding);
[[nodiscard]] Array device_put(Operand x, Mesh mesh, PartitionSpec spec);
[[nodiscard]] Array device_put(Operand x, Device device);
/// Inside jit: what the planner has to give x, also for what x is computed from. Outside: device_put.
[[nodiscard]] Array with_sharding_constraint(Operand x, Sharding sharding);
/// @}

/// @name Values
/// Reading a value computes it. LinAlgError, NanError and MemoryError (more than a rank may use) are raised
/// on every rank of the array. ArgumentError inside a function that is being traced, where there is no
/// value yet.
/// @{

/// Computes the arrays together. Collective over the ranks of their meshes (all ranks for uncommitted
/// ones); others pass by at once. Sends what the plans say, and a few bytes of agreement. See tree.hpp for
/// several trees.
void eval(const std::vector<Array>& arrays, std::source_location where = std::source_location::current());
/// The whole value on every rank. Collective over all ranks: gathers x everywhere.
[[nodiscard]] HostArray to_host(const Array& x, std::source_location where = std::source_location::current());
/// NumPy-like text; of large arrays the corners. Collective over all ranks: gathers what is shown.
std::string to_string(const Array& x, std::source_location where = std::source_location::current());
/// Writes to_string once per job, by rank 0. Collective over all ranks.
void print(const Array& x, std::source_location where = std::source_location::current());
std::ostream& operator<<(std::ostream&, const Array&);
/// @}

namespace detail {
const std::byte* local_bytes(const Array&, Dtype, std::int64_t& elements, std::source_location);
void item_bytes(const Array&, Dtype, void* out, std::source_location);
}  // namespace detail
/// The one element of an array of size 1, converted to T. Collective over all ranks: one number goes to
/// each. ShapeError for other sizes.
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
/// This rank's block, row-major and without a copy; empty if it holds none. Valid while a handle on x lives,
/// also when x is donated or deleted: its memory then goes with the last handle. Collective over the ranks
/// of x: computes it. DtypeError unless T is the element type.
template <class T>
std::span<const T> local(const Array& x, std::source_location where = std::source_location::current()) {
  std::int64_t elements = 0;
  const std::byte* data = detail::local_bytes(x, dtype_of<T>(), elements, where);
  return {reinterpret_cast<const T*>(data), static_cast<std::size_t>(elements)};
}
/// The same of a temporary, local<float>(x * 2): what is given keeps the memory.
template <class T>
KeptValues<T> local(const Array&& x, std::source_location where = std::source_location::current()) {
  const std::span<const T> values = local<T>(x, where);
  return {x.node(), values.data(), values.size()};
}

}  // namespace tessera
