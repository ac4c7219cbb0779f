#include "types/box.hpp"

#include <tessera/error.hpp>

#include "base/call.hpp"

#include <algorithm>
#include <ostream>

#include "types/checked.hpp"

namespace tessera {

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (auto extent : extents_) product *= extent;
  return product;
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (std::size_t d = 0; d < shape.size(); ++d) text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::string to_string(const Index& index) {
  std::string text = "[";
  for (std::size_t d = 0; d < index.size(); ++d)
    text += (d ? ", " : "") + std::to_string(index[d].start) + ":" + std::to_string(index[d].stop);
  return text + "]";
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << to_string(shape); }

Box whole_box(const Shape& shape) {
  Box box;
  box.reserve(shape.size());
  for (auto extent : shape) box.push_back({0, extent});
  return box;
}

Shape box_shape(const Box& box) {
  std::vector<std::int64_t> extents;
  extents.reserve(box.size());
  for (const auto& range : box) extents.push_back(std::max<std::int64_t>(0, range.size()));
  return Shape(std::move(extents));
}

std::int64_t box_elements(const Box& box) {
  std::int64_t product = 1;
  for (const auto& range : box) product *= std::max<std::int64_t>(0, range.size());
  return product;
}

bool is_empty(const Box& box) { return box_elements(box) == 0; }

Box intersect(const Box& a, const Box& b) {
  Box both(a.size());
  for (std::size_t d = 0; d < a.size(); ++d) {
    both[d].start = std::max(a[d].start, b[d].start);
    both[d].stop = std::max(both[d].start, std::min(a[d].stop, b[d].stop));
  }
  return both;
}

bool contains(const Box& outer, const Box& inner) {
  if (is_empty(inner)) return true;
  for (std::size_t d = 0; d < outer.size(); ++d)
    if (inner[d].start < outer[d].start || inner[d].stop > outer[d].stop) return false;
  return true;
}

std::vector<std::int64_t> row_major_strides(const Shape& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

std::int64_t checked_mul(std::int64_t a, std::int64_t b, const char* what) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    throw ShapeError(call_text_or(what) + ": " + std::to_string(a) + " * " + std::to_string(b) +
                     " does not fit 64 bits; use a smaller shape");
  return product;
}

std::int64_t checked_elements(const Shape& shape, const char* what) { return checked_product(shape, what); }

std::int64_t checked_bytes(const Shape& shape, std::size_t itemsize, const char* what) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(checked_elements(shape, what), static_cast<std::int64_t>(itemsize), &bytes))
    throw ShapeError(call_text_or(what) + ": the bytes of shape " + to_string(shape) + " at " +
                     std::to_string(itemsize) + " bytes an element do not fit 64 bits; use a smaller shape");
  return bytes;
}

}  // namespace tessera
