// Array: a handle on an n-d array that is spread over a mesh of devices (API section 3).
//
// Ops on arrays record; values are computed when they are asked for (eval, to_host, item, print, I/O).
// Shape, dtype and sharding are known at once and never depend on when the value is computed.
#pragma once
#include <complex>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <set>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/dtype.hpp>
#include <tessera/error.hpp>
#include <tessera/shape.hpp>
#include <tessera/sharding.hpp>

namespace tessera {

struct Node;
class At;
struct Shard;
struct IndexPart;

// A dense row-major block in host memory, owned.
class HostArray {
 public:
  HostArray() : HostArray(Shape{0}, float32) {}
  HostArray(Shape shape, Dtype dtype);  // zeros
  // ShapeError unless there are as many values as the shape has elements.
  template <class T> HostArray(const std::vector<T>& values, const Shape& shape)
      : HostArray(shape, dtype_of<T>()) {
    check_count(static_cast<std::int64_t>(values.size()));
    if constexpr (std::is_same_v<T, bool>) {
      for (std::size_t i = 0; i < values.size(); ++i)
        data_.get()[i] = static_cast<std::byte>(values[i] ? 1 : 0);
    } else {
      copy_from(values.data());
    }
  }
  template <class T> HostArray(std::span<const T> values, const Shape& shape)
      : HostArray(shape, dtype_of<T>()) {
    check_count(static_cast<std::int64_t>(values.size()));
    copy_from(values.data());
  }
  const Shape& shape() const { return shape_; }
  Dtype dtype() const { return dtype_; }
  std::int64_t size() const { return shape_.elements(); }
  std::int64_t nbytes() const { return size() * static_cast<std::int64_t>(itemsize(dtype_)); }
  std::byte* bytes() { return data_.get(); }
  const std::byte* bytes() const { return data_.get(); }
  // DtypeError unless T is the element type.
  template <class T> std::span<const T> as() const {
    check_dtype(dtype_of<T>());
    return {reinterpret_cast<const T*>(data_.get()), static_cast<std::size_t>(size())};
  }

 private:
  void check_count(std::int64_t count) const;
  void check_dtype(Dtype) const;
  void copy_from(const void* values);
  Shape shape_;
  Dtype dtype_;
  std::shared_ptr<std::byte[]> data_;
};

class Array {
 public:
  // A scalar is weakly typed: x + 1 keeps x's dtype.
  template <class S>
  requires(std::is_arithmetic_v<S>) Array(S value) {
    if constexpr (std::is_same_v<S, bool>)
      *this = weak_bool(value);
    else if constexpr (std::is_integral_v<S>)
      *this = weak_integer(static_cast<std::int64_t>(value));
    else
      *this = weak_floating(static_cast<double>(value));
  }
  template <class R> Array(std::complex<R> value) { *this = weak_complex(std::complex<double>(value)); }
  Array(std::shared_ptr<Node> node, int output) : node_(std::move(node)), output_(output) {}
  Array() = default;  // holds nothing; any use but assignment is an ArgumentError

  const Shape& shape() const;
  int ndim() const;
  std::int64_t size() const;
  Dtype dtype() const;
  bool is_weakly_typed() const;
  std::int64_t nbytes() const;
  // Where the value lies. An uncommitted array that is read is computed on every rank: it shows as
  // replicated over all devices.
  Sharding sharding() const;
  bool is_committed() const;
  bool is_fully_replicated() const;
  Array T() const;
  // This process's blocks; computes the value (collective over the devices of the array).
  std::vector<Shard> addressable_shards() const;
  std::set<Device> devices() const;
  bool is_deleted() const;
  void delete_();  // frees the memory on this rank; later uses raise ArgumentError

  // x(0, slice(), newaxis, indices): see IndexPart below. Up to six parts the user's line is known to error
  // messages.
  using Where = std::source_location;
  Array operator()(const IndexPart& a, Where = Where::current()) const;
  Array operator()(const IndexPart& a, const IndexPart& b, Where = Where::current()) const;
  Array operator()(const IndexPart& a, const IndexPart& b, const IndexPart& c,
                   Where = Where::current()) const;
  Array operator()(const IndexPart& a, const IndexPart& b, const IndexPart& c, const IndexPart& d,
                   Where = Where::current()) const;
  Array operator()(const IndexPart& a, const IndexPart& b, const IndexPart& c, const IndexPart& d,
                   const IndexPart& e, Where = Where::current()) const;
  Array operator()(const IndexPart& a, const IndexPart& b, const IndexPart& c, const IndexPart& d,
                   const IndexPart& e, const IndexPart& f, Where = Where::current()) const;
  template <class... I>
  requires((sizeof...(I) == 0 || sizeof...(I) > 6) && (std::is_convertible_v<I, IndexPart> && ...)) Array
  operator()(const I&... parts) const;
  At at(const IndexPart& a, Where = Where::current()) const;
  At at(const IndexPart& a, const IndexPart& b, Where = Where::current()) const;
  At at(const IndexPart& a, const IndexPart& b, const IndexPart& c, Where = Where::current()) const;
  At at(const IndexPart& a, const IndexPart& b, const IndexPart& c, const IndexPart& d,
        Where = Where::current()) const;
  At at(const IndexPart& a, const IndexPart& b, const IndexPart& c, const IndexPart& d, const IndexPart& e,
        Where = Where::current()) const;
  At at(const IndexPart& a, const IndexPart& b, const IndexPart& c, const IndexPart& d, const IndexPart& e,
        const IndexPart& f, Where = Where::current()) const;
  template <class... I>
  requires((sizeof...(I) == 0 || sizeof...(I) > 6) && (std::is_convertible_v<I, IndexPart> && ...)) At
      at(const I&... parts)
  const;

  const std::shared_ptr<Node>& node() const { return node_; }
  int output() const { return output_; }

 private:
  static Array weak_bool(bool);
  static Array weak_integer(std::int64_t);
  static Array weak_floating(double);
  static Array weak_complex(std::complex<double>);
  std::shared_ptr<Node> node_;
  int output_ = 0;
};

struct Shard {
  Device device;
  Index index;  // its place in the global array
  int replica_id;
  Array data;  // the block itself, on that device alone
};

// An array argument that remembers where in the user's program it was passed: what error messages and
// program texts cite.
class Operand {
 public:
  Operand(const Array& array, std::source_location where = std::source_location::current())
      : array(array), where(where) {}
  Operand(Array&& array, std::source_location where = std::source_location::current())
      : array(std::move(array)), where(where) {}
  template <class S>
  requires(std::is_arithmetic_v<S>)
      Operand(S value, std::source_location where = std::source_location::current())
      : array(value), where(where) {}
  template <class R>
  Operand(std::complex<R> value, std::source_location where = std::source_location::current())
      : array(value), where(where) {}
  Array array;
  std::source_location where;
};

// ---- indexing: x(0, slice(), slice(2, 10, 2), newaxis, ellipsis) ----
struct SliceBound {
  SliceBound(NoneType) {}
  SliceBound(std::int64_t value) : value(value) {}
  std::optional<std::int64_t> value;
};
struct Slice {
  std::optional<std::int64_t> start, stop, step;
};
inline Slice slice(SliceBound start = None, SliceBound stop = None, SliceBound step = None) {
  return {start.value, stop.value, step.value};
}
struct Ellipsis {};
inline constexpr Ellipsis ellipsis{};
inline constexpr NoneType newaxis{};

struct IndexPart {
  enum class Kind { integer, slice, ellipsis, newaxis, array };
  template <class I>
  requires(std::is_integral_v<I> && !std::is_same_v<I, bool>) IndexPart(I i)
      : kind(Kind::integer), integer(static_cast<std::int64_t>(i)) {}
  IndexPart(const Slice& s) : kind(Kind::slice), slice(s) {}
  IndexPart(const Ellipsis&) : kind(Kind::ellipsis) {}
  IndexPart(NoneType) : kind(Kind::newaxis) {}
  IndexPart(const Array& a) : kind(Kind::array), array(a) {}
  Kind kind;
  std::int64_t integer = 0;
  Slice slice;
  Array array;
};
Array index(const Array& x, std::vector<IndexPart> parts,
            std::source_location where = std::source_location::current());

// x.at(0, slice()).set(v): a new array in which the indexed part is replaced; x itself does not change. v
// broadcasts to the part and takes x's dtype. The result has x's sharding; v travels to where it is put. Of
// an index array, entries out of range are skipped and repeated ones all count (`set`: one of them wins).
// at(mask) with one bool array chooses elements.
class At {
 public:
  At(Array x, std::vector<IndexPart> parts, std::source_location where = std::source_location::current())
      : x_(std::move(x)), parts_(std::move(parts)), where_(where) {}
  Array get() const;
  Array set(const Operand&) const;
  Array add(const Operand&) const;  // repeated indices add up
  Array subtract(const Operand&) const;
  Array multiply(const Operand&) const;
  Array divide(const Operand&) const;
  Array min(const Operand&) const;
  Array max(const Operand&) const;

 private:
  Array x_;
  std::vector<IndexPart> parts_;
  std::source_location where_;
};

inline Array Array::operator()(const IndexPart& a, Where where) const { return index(*this, {a}, where); }
inline Array Array::operator()(const IndexPart& a, const IndexPart& b, Where where) const {
  return index(*this, {a, b}, where);
}
inline Array Array::operator()(const IndexPart& a, const IndexPart& b, const IndexPart& c,
                               Where where) const {
  return index(*this, {a, b, c}, where);
}
inline Array Array::operator()(const IndexPart& a, const IndexPart& b, const IndexPart& c, const IndexPart& d,
                               Where where) const {
  return index(*this, {a, b, c, d}, where);
}
inline Array Array::operator()(const IndexPart& a, const IndexPart& b, const IndexPart& c, const IndexPart& d,
                               const IndexPart& e, Where where) const {
  return index(*this, {a, b, c, d, e}, where);
}
inline Array Array::operator()(const IndexPart& a, const IndexPart& b, const IndexPart& c, const IndexPart& d,
                               const IndexPart& e, const IndexPart& f, Where where) const {
  return index(*this, {a, b, c, d, e, f}, where);
}
template <class... I>
requires((sizeof...(I) == 0 || sizeof...(I) > 6) &&
         (std::is_convertible_v<I, IndexPart> && ...)) Array Array::operator()(const I&... parts) const {
  return index(*this, {IndexPart(parts)...});
}
inline At Array::at(const IndexPart& a, Where where) const { return At(*this, {a}, where); }
inline At Array::at(const IndexPart& a, const IndexPart& b, Where where) const {
  return At(*this, {a, b}, where);
}
inline At Array::at(const IndexPart& a, const IndexPart& b, const IndexPart& c, Where where) const {
  return At(*this, {a, b, c}, where);
}
inline At Array::at(const IndexPart& a, const IndexPart& b, const IndexPart& c, const IndexPart& d,
                    Where where) const {
  return At(*this, {a, b, c, d}, where);
}
inline At Array::at(const IndexPart& a, const IndexPart& b, const IndexPart& c, const IndexPart& d,
                    const IndexPart& e, Where where) const {
  return At(*this, {a, b, c, d, e}, where);
}
inline At Array::at(const IndexPart& a, const IndexPart& b, const IndexPart& c, const IndexPart& d,
                    const IndexPart& e, const IndexPart& f, Where where) const {
  return At(*this, {a, b, c, d, e, f}, where);
}
template <class... I>
requires((sizeof...(I) == 0 || sizeof...(I) > 6) &&
         (std::is_convertible_v<I, IndexPart> && ...)) At Array::at(const I&... parts)
const { return At(*this, {IndexPart(parts)...}); }

// ---- creation: uncommitted, computed in the layout of whoever consumes them ----
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
