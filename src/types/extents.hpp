// Shapes with a dim more or less.
#pragma once
#include <tessera/shape.hpp>

#include <algorithm>

namespace tessera {

// With a dim of `extent` before dim `at`.
inline Shape with_dim(Shape shape, std::ptrdiff_t at, std::int64_t extent) {
  shape.push_back(extent);
  auto* const first = &shape[0];
  std::rotate(first + at, first + shape.size() - 1, first + shape.size());
  return shape;
}
// The dims of both, a's first.
inline Shape join(Shape a, const Shape& b) {
  for (const auto extent : b) a.push_back(extent);
  return a;
}
// The dims but the last n.
inline Shape without_last(const Shape& shape, int n) {
  Shape result;
  for (int d = 0; d + n < shape.ndim(); ++d) result.push_back(shape[static_cast<std::size_t>(d)]);
  return result;
}
// With dims of 1 behind the others, `ndim` in all.
inline Shape with_ones(Shape shape, std::size_t ndim) {
  while (shape.size() < ndim) shape.push_back(1);
  return shape;
}
// Without dim `at`.
inline Shape without_dim(const Shape& shape, std::ptrdiff_t at) {
  Shape result;
  for (std::ptrdiff_t d = 0; d < std::ssize(shape); ++d)
    if (d != at) result.push_back(shape[static_cast<std::size_t>(d)]);
  return result;
}

}  // namespace tessera
