/// @file
/// Axes of an array, as NumPy's functions take them.
#pragma once
#include <initializer_list>
#include <utility>
#include <vector>

namespace tessera {

/// One axis or several, negative ones from the end; none means all. Functions that take it raise IndexError
/// for an axis that is out of range or named twice.
struct Axes {
  Axes() = default;
  Axes(int axis) : values{axis} {}                          ///< one
  Axes(std::initializer_list<int> axes) : values(axes) {}   ///< sum(x, {0, -1})
  Axes(std::vector<int> axes) : values(std::move(axes)) {}  ///< as many as the vector has
  std::vector<int> values;                                  ///< as given; empty for all
};

}  // namespace tessera
