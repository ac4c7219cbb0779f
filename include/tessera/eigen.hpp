/// @file
/// A rank's block as another library's view of a matrix or vector, such as Eigen's Map. Includes nothing of
/// that library. Not part of tessera.hpp.
///
///   using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
///   const auto block = tessera::local_map<Eigen::Map<const Rows>>(x);
#pragma once
#include <source_location>
#include <type_traits>

#include <tessera/array/memory.hpp>

namespace tessera {

namespace detail {
void check_matrix_or_vector(const Array& x, std::source_location where);
}

/// A view of this rank's block of x, without a copy, valid while a handle on x exists, see local. Map is
/// constructed from (first element, rows, columns), or from (first element, size) for an x with one dim, and
/// has a type Scalar; it must be a read-only view of row-major memory. Computes x. Collective over the ranks
/// of x. ShapeError unless x has one dim or two; DtypeError unless Map's Scalar is its element type.
template <class Map>
[[nodiscard]] Map local_map(const Array& x, std::source_location where = std::source_location::current()) {
  detail::check_matrix_or_vector(x, where);
  using Scalar = std::remove_cv_t<typename Map::Scalar>;
  const LocalView<Scalar> block = local_mdspan<Scalar>(x, where);
  if constexpr (std::is_constructible_v<Map, const Scalar*, std::int64_t, std::int64_t>)
    if (x.ndim() == 2) return Map(block.data_handle(), block.extent(0), block.extent(1));
  if constexpr (std::is_constructible_v<Map, const Scalar*, std::int64_t>)
    return Map(block.data_handle(), block.size());
  else
    return Map(block.data_handle(), block.size(), std::int64_t{1});
}
/// Does not compile: a temporary's memory would be freed before the map is read.
template <class Map> Map local_map(const Array&&, std::source_location = {}) {
  static_assert(detail::never<Map>,
                "local_map of a temporary: give the array a name first, whose memory the map then reads");
}

}  // namespace tessera
