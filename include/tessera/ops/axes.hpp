// Axes of an array, as NumPy's functions take them.
#pragma once
#include <initializer_list>
#include <utility>
#include <vector>

namespace tessera {

// One axis or several, negative ones from the end; none means all.
struct Axes {
  Axes() = default;
  Axes(int axis) : values{axis} {}
  Axes(std::initializer_list<int> axes) : values(axes) {}
  Axes(std::vector<int> axes) : values(std::move(axes)) {}
  std::vector<int> values;
};

}  // namespace tessera
