/// @file
/// Axes of an array, as NumPy's functions take them.
#pragma once
#include <tessera/detail/standard.hpp>

#include <concepts>
#include <utility>
#include <vector>

namespace tessera {

/// An integer as the number of an axis; not bool, so that sum(x, true) and sum(x, {true}) do not compile.
template <class I>
concept AxisNumber = std::integral<I> && !std::same_as<I, bool>;

/// One axis or several, negative ones counted from the end; empty means all. Functions that take it raise
/// IndexError for an axis that is out of range or named twice.
struct Axes {
  Axes() = default;
  /// One or several: sum(x, 0), sum(x, {0, -1}). Not an initializer list: g++ would take the names of
  /// options, {.correction = 1}, for a list of axes.
  template <AxisNumber... I>
  requires(sizeof...(I) > 0) Axes(I... axes) : values{static_cast<int>(axes)...} {}
  Axes(std::vector<int> axes) : values(std::move(axes)) {}  ///< one axis per entry of the vector
  std::vector<int> values;                                  ///< the axes as given; empty for all
};

/// Options of a reduction by name: sum(x, {.axis = 0, .keepdims = true}), sum(x, {.keepdims = true}).
struct AxisOptions {
  Axes axis = {};         ///< one or several; all unless given
  bool keepdims = false;  ///< reduced axes are kept with extent 1
};
/// Options of var and std by name: stddev(x, {.axis = 0, .correction = 1}).
struct SpreadOptions {
  Axes axis = {};         ///< one or several; all unless given
  bool keepdims = false;  ///< reduced axes are kept with extent 1
  double correction = 0;  ///< the sum of squares is divided by n - correction
};

}  // namespace tessera
