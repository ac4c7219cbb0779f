/// @file
/// Axes of an array, as NumPy's functions take them.
#pragma once
#include <tessera/detail/standard.hpp>

#include <concepts>
#include <initializer_list>
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
  template <AxisNumber I> Axes(I axis) : values{static_cast<int>(axis)} {}  ///< one
  template <AxisNumber I> Axes(std::initializer_list<I> axes)
      : values(axes.begin(), axes.end()) {}                 ///< sum(x, {0, -1})
  Axes(std::vector<int> axes) : values(std::move(axes)) {}  ///< one axis per entry of the vector
  std::vector<int> values;                                  ///< the axes as given; empty for all
};

/// Options of a reduction by name: sum(x, {.axis = 0, .keepdims = true}), sum(x, {.keepdims = true}).
struct AxisOptions {
  Axes axis = {};         ///< one or several; all unless given
  bool keepdims = false;  ///< reduced axes are kept with extent 1
};

}  // namespace tessera
