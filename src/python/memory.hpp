// Dense memory that other libraries read in place.
#pragma once
#include <memory>

#include "python/convert.hpp"

namespace tessera::python {

// A copy of a complete value, or one rank's block in place.
struct Block {
  std::shared_ptr<const void> keeps;
  const void* data;
  Shape shape;
  Dtype dtype;
  bool read_only;
};

// The block as a DLPack capsule. A versioned capsule has a flag that tells whether the consumer may write;
// the older form cannot tell, so it is given only for writable blocks.
py::capsule dlpack_capsule(const Block&, bool versioned);

}  // namespace tessera::python
