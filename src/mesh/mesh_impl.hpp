// The internals of a Mesh, for the other files of src/mesh.
#pragma once
#include <tessera/mesh.hpp>

#include "base/hash.hpp"

namespace tessera {

struct Mesh::Impl {
  std::vector<std::string> names;
  std::vector<int> sizes, strides;  // coordinate along axis a = position / strides[a] % sizes[a]
  std::vector<int> ids;             // row-major
  std::vector<int> position;        // by id - lowest_id; empty when ids are lowest_id, lowest_id + 1, ...
  int lowest_id = 0;
  bool abstract = false;
  std::size_t ids_hash = 0, hash = 0;

  int position_of(int id) const {
    const int from_lowest = id - lowest_id;
    if (position.empty())
      return from_lowest >= 0 && from_lowest < static_cast<int>(ids.size()) ? from_lowest : -1;
    return from_lowest >= 0 && from_lowest < static_cast<int>(position.size()) ? position[from_lowest] : -1;
  }
};

}  // namespace tessera
