// The last placements of a compilation, and the bytes of its last moves: the layers of a network ask alike.
#pragma once
#include <optional>
#include <vector>

#include "graph/op.hpp"

namespace tessera {

// A memo lives for one compilation, in which the machine's rates do not change and no params are freed:
// answers are kept by the address of the params.
class PlacementMemo {
 public:
  Placement place(const OpDef&, const PlacementArgs&);  // as tessera::place
  // Bytes that the busiest rank receives when a value moves.
  std::int64_t moved_bytes(const Sharding& from, const Sharding& to, const Type&, const MeshAxes& fixed_axes);

 private:
  static constexpr std::size_t most_kept = 16;

  struct Placed {
    const OpDef* op;
    const Params* params;
    std::vector<Type> in, out;
    std::vector<std::optional<Sharding>> shardings;
    Mesh mesh;
    MeshAxes fixed_axes;
    std::optional<Sharding> wanted;
    bool same_bits;
    Placement answer;
    bool is(const OpDef&, const PlacementArgs&) const;
  };
  struct Moved {
    Sharding from, to;
    Type type;
    MeshAxes fixed_axes;
    std::int64_t bytes;
  };
  template <class T> const T& keep(std::vector<T>& kept, std::size_t& next, T value) {
    if (kept.size() < most_kept) return kept.emplace_back(std::move(value));
    T& place = kept[next++ % most_kept];
    return place = std::move(value);
  }

  std::vector<Placed> placed_;
  std::vector<Moved> moved_;
  std::size_t next_placed_ = 0, next_moved_ = 0;
};

}  // namespace tessera
