// The meaning of x(0, slice(), i, newaxis, ellipsis) for an array of a given shape.
#pragma once
#include <vector>

#include <tessera/array.hpp>

namespace tessera {

// The static part: x[start : : step] with `count` elements in each dim of x, then reshaped to `shape`, which
// lacks the dims of plain integers and has new axes of size 1. Then the index arrays, of one shape, address
// its dims `array_dims`; the dims of their shape go to position `arrays_at`.
struct ParsedIndex {
  std::vector<std::int64_t> start, step;
  Shape count;
  std::vector<int> integer_dims;  // dims of x indexed by plain integers
  Shape shape;
  std::vector<Array> arrays;
  std::vector<int> array_dims;
  int arrays_at = 0;
  bool takes_everything = true;  // the static part selects the complete array
};

// IndexError naming the invalid part: out of bounds, too many, a step of 0, two ellipses, an array that is
// not of integers.
ParsedIndex parse_index(const Shape&, std::vector<IndexPart>);

}  // namespace tessera
