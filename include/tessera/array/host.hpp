/// @file
/// HostArray: a dense block in a process's own memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/array/kept.hpp>
#include <tessera/dtype.hpp>
#include <tessera/shape.hpp>

namespace tessera {

namespace detail {
// ShapeError unless the values fill the shape.
void check_count(std::int64_t count, const Shape&, const char* call, std::source_location);
}  // namespace detail

/// A dense row-major block in a process's own memory. Copies share the memory. Not collective.
class HostArray {
 public:
  HostArray() : HostArray(Shape{0}, float32) {}
  /// Zeros.
  HostArray(Shape shape, Dtype dtype, std::source_location where = std::source_location::current());
  /// A copy of the values, in row-major order. ShapeError unless their number matches the shape.
  template <class T> HostArray(const std::vector<T>& values, const Shape& shape,
                               std::source_location where = std::source_location::current())
      : HostArray(shape, dtype_of<T>(), where) {
    detail::check_count(static_cast<std::int64_t>(values.size()), shape, "HostArray", where);
    if constexpr (std::is_same_v<T, bool>) {
      for (std::size_t i = 0; i < values.size(); ++i)
        data_.get()[i] = static_cast<std::byte>(values[i] ? 1 : 0);
    } else {
      copy_from(values.data());
    }
  }
  template <class T> HostArray(std::span<const T> values, const Shape& shape,
                               std::source_location where = std::source_location::current())
      : HostArray(shape, dtype_of<T>(), where) {
    detail::check_count(static_cast<std::int64_t>(values.size()), shape, "HostArray", where);
    copy_from(values.data());
  }
  /// A moved vector's memory itself, which is neither copied nor zeroed. ShapeError as above.
  template <class T> HostArray(std::vector<T>&& values, const Shape& shape,
                               std::source_location where = std::source_location::current())
      : shape_(shape), dtype_(dtype_of<T>()) {
    detail::check_count(static_cast<std::int64_t>(values.size()), shape, "HostArray", where);
    if constexpr (std::is_same_v<T, bool>) {
      *this = HostArray(static_cast<const std::vector<bool>&>(values), shape, where);
    } else {
      const auto owner = std::make_shared<std::vector<T>>(std::move(values));
      data_ = std::shared_ptr<std::byte[]>(owner, reinterpret_cast<std::byte*>(owner->data()));
    }
  }
  /// Borrows dense row-major memory without a copy: `release` is called when it is no longer used, possibly
  /// on another thread. The memory is only read, so it may be a file that is mapped for reading.
  static HostArray adopt(void* values, Shape shape, Dtype dtype, std::function<void()> release);
  const Shape& shape() const& { return shape_; }  ///< extents
  Shape shape() const&& { return shape_; }
  Dtype dtype() const { return dtype_; }  ///< element type
  /// Number of elements.
  std::int64_t size() const { return shape_.elements(); }
  /// Bytes of all elements.
  std::int64_t nbytes() const { return size() * static_cast<std::int64_t>(itemsize(dtype_)); }
  /// The memory, writable too.
  std::byte* bytes() { return data_.get(); }
  const std::byte* bytes() const { return data_.get(); }
  /// The elements, without a copy. DtypeError unless T is the element type.
  template <class T>
  std::span<const T> as(std::source_location where = std::source_location::current()) const& {
    check_dtype(dtype_of<T>(), where);
    return {reinterpret_cast<const T*>(data_.get()), static_cast<std::size_t>(size())};
  }
  /// The same for a temporary, to_host(x).as<float>(): the result keeps the memory alive.
  template <class T> KeptValues<T> as(std::source_location where = std::source_location::current()) const&& {
    check_dtype(dtype_of<T>(), where);
    return {data_, reinterpret_cast<const T*>(data_.get()), static_cast<std::size_t>(size())};
  }
  /// The same for writing. Copies of this HostArray see the changes.
  template <class T> std::span<T> as(std::source_location where = std::source_location::current()) & {
    check_dtype(dtype_of<T>(), where);
    return {reinterpret_cast<T*>(data_.get()), static_cast<std::size_t>(size())};
  }
  /// Releases ownership of the memory if no copy shares it (the block then has no elements); otherwise null.
  std::shared_ptr<std::byte[]> take();
  /// Whether the memory is borrowed, see adopt.
  bool is_adopted() const { return is_adopted_; }

 private:
  void check_dtype(Dtype, std::source_location) const;
  void copy_from(const void* values);
  Shape shape_;
  Dtype dtype_;
  std::shared_ptr<std::byte[]> data_;
  bool is_adopted_ = false;
};

}  // namespace tessera
