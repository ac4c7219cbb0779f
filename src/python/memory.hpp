// Dense memory that other libraries read in place.
#pragma once
#include <memory>

#include "python/convert.hpp"

namespace tessera::python {

// A copy of a whole value, or one rank's block itself.
struct Block {
  std::shared_ptr<const void> keeps;
  const void* data;
  Shape shape;
  Dtype dtype;
  bool read_only;
};

// The block as DLPack hands it on. Versioned: a flag says whether the consumer may write. The older capsule
// cannot say so, and is given of blocks that may be written alone.
py::capsule dlpack_capsule(const Block&, bool versioned);

}  // namespace tessera::python
