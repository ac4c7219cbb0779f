/// @file
/// Shapes and half-open index ranges. Nothing here is collective.
#pragma once
#include <tessera/detail/standard.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <vector>

#include <tessera/detail/inline_vector.hpp>

namespace tessera {

/// The extents of an array, one per dim; () is a scalar. Prints as (3, 4).
class Shape {
 public:
  Shape() = default;
  /// From extents: Shape{3, 4}.
  Shape(std::initializer_list<std::int64_t> extents) : extents_(extents) {}
  /// From one extent, zeros(3), or from a vector or std::array of integers.
  template <std::integral I>
  requires(!std::same_as<I, bool>) Shape(I extent) { extents_.push_back(static_cast<std::int64_t>(extent)); }
  Shape(const std::vector<std::int64_t>& extents) : extents_(extents.begin(), extents.end()) {}
  template <std::integral I>
  requires(!std::same_as<I, bool>) Shape(const std::vector<I>& extents)
      : extents_(extents.begin(), extents.end()) {}
  template <std::integral I, std::size_t n>
  requires(!std::same_as<I, bool>) Shape(const std::array<I, n>& extents)
      : extents_(extents.begin(), extents.end()) {}
  const std::int64_t* begin() const { return extents_.data(); }                  ///< the first extent
  const std::int64_t* end() const { return extents_.data() + extents_.size(); }  ///< past the last
  std::size_t size() const { return extents_.size(); }                           ///< number of dimensions
  int ndim() const { return static_cast<int>(extents_.size()); }  ///< the number of dims as int
  bool empty() const { return extents_.empty(); }                 ///< whether it is ()
  /// The extent of a dimension, which must exist.
  std::int64_t operator[](std::size_t dim) const { return extents_[dim]; }
  std::int64_t& operator[](std::size_t dim) { return extents_[dim]; }
  void push_back(std::int64_t extent) { extents_.push_back(extent); }  ///< appends a dimension
  std::int64_t back() const { return extents_.back(); }                ///< the last extent
  /// A copy of the extents; begin() and end() are of the shape itself.
  std::vector<std::int64_t> vector() const { return {begin(), end()}; }
  std::int64_t elements() const;  ///< product of the extents; 1 for ()
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  static constexpr std::size_t usual_dims = 4;  // of larger arrays the extents take an allocation
  detail::InlineVector<std::int64_t, usual_dims> extents_;
};
std::ostream& operator<<(std::ostream&, const Shape&);
std::string to_string(const Shape&);  ///< (3, 4)

/// The half-open range [start, stop).
struct Range {
  std::int64_t start = 0, stop = 0;                   ///< first, and past the last
  std::int64_t size() const { return stop - start; }  ///< number of elements
  friend bool operator==(const Range&, const Range&) = default;
};

/// One range per dim: the position of a block in the global array. Prints as [0:4, 2:6].
using Index = std::vector<Range>;
std::string to_string(const Index&);  ///< [0:4, 2:6]

}  // namespace tessera
