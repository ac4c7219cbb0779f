// Where arrays lie, and their values.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iosfwd>
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
void eval(const std::vector<Array>&);
HostArray to_host(const Array&);      // the whole value on every rank
std::string to_string(const Array&);  // NumPy-like text
void print(const Array&);             // once per job
std::ostream& operator<<(std::ostream&, const Array&);
namespace detail {
const std::byte* local_bytes(const Array&, Dtype, std::int64_t& elements);
void item_bytes(const Array&, Dtype, void* out);
}  // namespace detail
// The one element of a size-1 array, converted to T.
template <class T> T item(const Array& x) {
  T value{};
  detail::item_bytes(x, dtype_of<T>(), &value);
  return value;
}
// All elements in row-major order, converted to T.
std::vector<bool> to_bool_vector(const Array&);
HostArray to_host(const Array&, Dtype);
template <class T> std::vector<T> to_vector(const Array& x) {
  if constexpr (std::is_same_v<T, bool>)
    return to_bool_vector(x);
  else {
    const HostArray host = to_host(x, dtype_of<T>());
    const auto values = host.as<T>();
    return std::vector<T>(values.begin(), values.end());
  }
}
// This rank's block, no copy; empty if it holds none. Valid while a handle on x lives. DtypeError unless T
// is the element type.
template <class T> std::span<const T> local(const Array& x) {
  std::int64_t elements = 0;
  const std::byte* data = detail::local_bytes(x, dtype_of<T>(), elements);
  return {reinterpret_cast<const T*>(data), static_cast<std::size_t>(elements)};
}

}  // namespace tessera
