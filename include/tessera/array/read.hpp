// Where arrays lie, and their values.
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

// ---- placement ----
Array device_put(Operand, Sharding);  // commits; any layout to any layout, other meshes too
Array device_put(Operand, Mesh, PartitionSpec);
Array device_put(Operand, Device);
Array with_sharding_constraint(Operand, Sharding);

// ---- reading: collective ----
void eval(const std::vector<Array>&, std::source_location where = std::source_location::current());
HostArray to_host(const Array&, std::source_location where =
                                    std::source_location::current());  // the whole value on every rank
std::string to_string(const Array&,
                      std::source_location where = std::source_location::current());     // NumPy-like text
void print(const Array&, std::source_location where = std::source_location::current());  // once per job
std::ostream& operator<<(std::ostream&, const Array&);
namespace detail {
const std::byte* local_bytes(const Array&, Dtype, std::int64_t& elements, std::source_location);
void item_bytes(const Array&, Dtype, void* out, std::source_location);
}  // namespace detail
// The one element of a size-1 array, converted to T.
template <class T> T item(const Array& x, std::source_location where = std::source_location::current()) {
  T value{};
  detail::item_bytes(x, dtype_of<T>(), &value, where);
  return value;
}
// All elements in row-major order, converted to T.
std::vector<bool> to_bool_vector(const Array&, std::source_location where = std::source_location::current());
HostArray to_host(const Array&, Dtype, std::source_location where = std::source_location::current());
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
// This rank's block, no copy; empty if it holds none. Valid while a handle on x lives. DtypeError unless T
// is the element type.
template <class T>
std::span<const T> local(const Array& x, std::source_location where = std::source_location::current()) {
  std::int64_t elements = 0;
  const std::byte* data = detail::local_bytes(x, dtype_of<T>(), elements, where);
  return {reinterpret_cast<const T*>(data), static_cast<std::size_t>(elements)};
}

}  // namespace tessera
