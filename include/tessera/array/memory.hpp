/// @file
/// Memory outside the library: arrays that take it over, and views of a rank's block.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <utility>
#include <vector>

#include <tessera/array/create.hpp>
#include <tessera/array/handle.hpp>
#include <tessera/array/host.hpp>
#include <tessera/array/read.hpp>

namespace tessera {

/// An array that takes over moved memory without a copy: a vector's, or that of a host array without other
/// copies. The values must be the same on every rank. Not collective. make_array_from_callback and
/// make_array_from_process_local_data take over their blocks in the same way. ShapeError for values that do
/// not fill the shape.
Array array(HostArray&& host, std::source_location where = std::source_location::current());
template <class T>
requires(!std::is_const_v<T> && !std::is_same_v<T, bool>) Array
    array(std::vector<T>&& values, Shape shape,
          std::source_location where = std::source_location::current()) {
  detail::check_count(static_cast<std::int64_t>(values.size()), shape, "array", where);
  return array(HostArray(std::move(values), shape, where), where);
}
template <class T>
requires(!std::is_const_v<T> && !std::is_same_v<T, bool>) Array
    array(std::vector<T>&& values, std::source_location where = std::source_location::current()) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  return array(HostArray(std::move(values), shape, where), where);
}
/// The shape of this rank's block; all extents are 0 on a rank without one. Not collective.
Shape local_shape(const Array& x);

/// A view of a block in row-major memory: view(i, j), and in C++23 view[i, j]. Like std::mdspan, but the
/// number of dims is known only at run time. Indices are not checked. Not collective.
template <class T> class LocalView {
 public:
  /// A view of memory owned by the caller.
  LocalView(const T* data, Shape shape, std::shared_ptr<const void> keeps = nullptr)
      : data_(data), shape_(std::move(shape)), keeps_(std::move(keeps)) {
    strides_.resize(shape_.size(), 1);
    for (std::size_t d = shape_.size(); d-- > 1;) strides_[d - 1] = strides_[d] * shape_[d];
  }
  const T* data_handle() const { return data_; }           ///< the first element
  const Shape& shape() const { return shape_; }            ///< extents
  std::size_t rank() const { return shape_.size(); }       ///< number of dims, as std::mdspan calls it
  std::int64_t size() const { return shape_.elements(); }  ///< number of elements
  /// The length of one dim.
  std::int64_t extent(std::size_t dim) const { return shape_[dim]; }
  /// Elements from one index of a dim to the next.
  std::int64_t stride(std::size_t dim) const { return strides_[dim]; }
  /// One index for each dim.
  template <class... I> const T& operator()(I... indices) const {
    std::int64_t place = 0;
    std::size_t dim = 0;
    ((place += static_cast<std::int64_t>(indices) * strides_[dim++]), ...);
    return data_[place];
  }
#ifdef __cpp_multidimensional_subscript
  /// One index for each dim.
  template <class... I> const T& operator[](I... indices) const { return (*this)(indices...); }
#endif

 private:
  const T* data_;
  Shape shape_;
  std::vector<std::int64_t> strides_;
  std::shared_ptr<const void> keeps_;
};

/// A view of this rank's block of x without a copy, valid while a handle on x exists, see local. Computes x.
/// Collective over the ranks of x. DtypeError unless T is the element type.
template <class T>
LocalView<T> local_mdspan(const Array& x, std::source_location where = std::source_location::current()) {
  return {local<T>(x, where).data(), local_shape(x)};
}
/// The same for a temporary; the view keeps the memory alive.
template <class T>
LocalView<T> local_mdspan(const Array&& x, std::source_location where = std::source_location::current()) {
  return {local<T>(x, where).data(), local_shape(x), x.node()};
}

/// Returns pooled memory to the system and gives its number of bytes. Not collective.
std::int64_t release_memory();

}  // namespace tessera
