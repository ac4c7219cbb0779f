// The operand of a local kernel: a dense row-major piece of memory, and its box in the global array.
#pragma once
#include <tessera/dtype.hpp>
#include <tessera/shape.hpp>

#include "types/box.hpp"

namespace tessera {

struct Tile {
  std::byte* data = nullptr;
  Dtype dtype;
  Box box;       // in the global index space; box_shape(box) is the tile's shape
  Shape global;  // shape of the global array

  Shape shape() const { return box_shape(box); }
  std::int64_t elements() const { return box_elements(box); }
  std::int64_t bytes() const { return elements() * static_cast<std::int64_t>(itemsize(dtype)); }
  template <class T> T* as() const { return reinterpret_cast<T*>(data); }
};

}  // namespace tessera
