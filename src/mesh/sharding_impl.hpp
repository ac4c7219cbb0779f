// The internals of a Sharding, for the other files of src/mesh.
#pragma once
#include <tessera/sharding.hpp>

#include <memory>
#include <optional>

#include "mesh/axes.hpp"
#include "mesh/mesh_impl.hpp"
#include "types/box.hpp"

namespace tessera {

// A mesh axis: a device at `position` of the mesh has coordinate position / stride % size along it.
struct AxisDigit {
  int stride = 1, size = 1;
  int axis = -1;
  int coordinate(int position) const { return position / stride % size; }
  friend bool operator==(const AxisDigit&, const AxisDigit&) = default;
};

// One term of the map from mesh position to block: `size` steps of one stride in the mesh position advance
// the part of `dim` by `weight` each. Adjacent terms that continue each other are merged, so that equal maps
// have equal terms whatever the names and the cuts of the axes.
struct Term {
  int size = 1, dim = -1, weight = 0;  // dim -1: replicas
  friend bool operator==(const Term&, const Term&) = default;
};

struct Sharding::Impl {
  Mesh mesh;
  PartitionSpec spec;                                    // the spec as the user wrote it
  std::shared_ptr<const PositionalSharding> positional;  // set if it was made from one
  bool single_device = false;

  // The normal form: no axes of size 1, no unsplit trailing dims.
  std::vector<AxisDigit> digits;    // digits of all dims, dim after dim, major first
  std::vector<int> first;           // digits[first[d] .. first[d+1]) split dim d
  std::vector<int> parts;           // blocks along each dim
  std::vector<AxisDigit> replicas;  // axes that split no dim, in mesh order
  std::vector<Term> terms;          // mesh position -> block, canonical
  std::size_t hash = 0;

  int split_dims() const { return static_cast<int>(parts.size()); }
  std::int64_t parts_of(std::size_t dim) const { return dim < parts.size() ? parts[dim] : 1; }

  // The number of the block along dim that the device at this position holds.
  std::int64_t part(std::size_t dim, int position) const {
    if (dim >= parts.size()) return 0;
    std::int64_t index = 0;
    for (int k = first[dim]; k < first[dim + 1]; ++k) {
      const AxisDigit& digit = digits[k];
      index = index * digit.size + digit.coordinate(position);
    }
    return index;
  }
  Range range(std::size_t dim, std::int64_t extent, int position) const {
    return dim < parts.size() ? block_range(extent, parts[dim], part(dim, position)) : Range{0, extent};
  }
};

}  // namespace tessera
