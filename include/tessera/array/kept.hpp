/// @file
/// KeptValues: a temporary's values together with their memory.
#pragma once
#include <cstddef>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

#include <tessera/detail/never.hpp>

namespace tessera {

/// Values together with ownership of their memory: returned by local and HostArray::as for a temporary. A
/// named KeptValues converts to std::span; the conversion of a temporary does not compile, because the memory
/// would be freed at the end of the statement.
template <class T> class KeptValues {
 public:
  using value_type = T;
  // Declared as not contiguous, to prevent an implicit span.
  using const_iterator = std::move_iterator<const T*>;
  /// Values in memory that `keeps` owns.
  KeptValues(std::shared_ptr<const void> keeps, const T* data, std::size_t size)
      : keeps_(std::move(keeps)), data_(data), size_(size) {}
  const T* data() const { return data_; }                               ///< the first value
  std::size_t size() const { return size_; }                            ///< number of values
  bool empty() const { return size_ == 0; }                             ///< whether there are none
  const T& operator[](std::size_t i) const { return data_[i]; }         ///< the index is not checked
  const T& front() const { return data_[0]; }                           ///< requires at least one value
  const T& back() const { return data_[size_ - 1]; }                    ///< requires at least one value
  const_iterator begin() const { return const_iterator(data_); }        ///< for loops
  const_iterator end() const { return const_iterator(data_ + size_); }  ///< for loops
  operator std::span<const T>() const& { return {data_, size_}; }       ///< valid as long as this
  /// Does not compile.
  template <class U> operator std::span<U>() const&& {
    static_assert(detail::never<U>,
                  "the span would outlive its memory: give the array a name first, or write auto instead of "
                  "std::span");
    return {};
  }

 private:
  std::shared_ptr<const void> keeps_;
  const T* data_;
  std::size_t size_;
};

}  // namespace tessera
