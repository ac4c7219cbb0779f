/// @file
/// Memory of one's own: arrays that take it over, and views of a rank's block.
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

/// The array takes over what is moved, without a copy: a vector's memory, or a host array's that no copy of
/// it shares. The values must be the same on every rank. Not collective. make_array_from_callback and
/// make_array_from_process_local_data take over the blocks that they are given in the same way. ShapeError
/// for values that do not fill the shape.
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
/// The shape of this rank's block; of a rank that holds none all extents are 0. Not collective.
Shape local_shape(const Array& x);

/// A block in row-major memory, element by element: view(i, j), and view[i, j] where the compiler has C++23.
/// As std::mdspan, but the number of dims is known at run time. Indices are not checked. Not collective.
template <class T> class LocalView {
 public:
  /// A view of memory that the caller keeps.
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

/// This rank's block of x without a copy, valid while a handle on x lives, see local. Collective over the
/// ranks of x: computes it. DtypeError unless T is the element type.
template <class T>
LocalView<T> local_mdspan(const Array& x, std::source_location where = std::source_location::current()) {
  return {local<T>(x, where).data(), local_shape(x)};
}
/// The same of a temporary, whose memory the view keeps.
template <class T>
LocalView<T> local_mdspan(const Array&& x, std::source_location where = std::source_location::current()) {
  return {local<T>(x, where).data(), local_shape(x), x.node()};
}

/// Gives the memory that is kept for later arrays back to the system; how many bytes. Not collective.
std::int64_t release_memory();

}  // namespace tessera
