// Inside of a Mesh, for the other files of this room.
#pragma once
#include <tessera/mesh.hpp>

#include <cstdint>

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

inline std::size_t hash_combine(std::size_t seed, std::size_t value) {
  std::uint64_t h = (seed ^ value) + 0x9e3779b97f4a7c15ULL + (static_cast<std::uint64_t>(seed) << 6);
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<std::size_t>(h ^ (h >> 31));
}
template <class Values> std::size_t hash_range(const Values& values, std::size_t seed) {
  seed = hash_combine(seed, values.size());
  for (const auto& value : values) seed = hash_combine(seed, value);
  return seed;
}

}  // namespace tessera
