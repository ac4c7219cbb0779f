// How blocks of a source sharding and blocks of a destination sharding meet, and which holder of a block
// serves which receiver.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "mesh/remap.hpp"
#include "mesh/sharding_impl.hpp"

namespace tessera {

// The i in `to` with offset + step * i in `source`; they are a range because the map is monotone.
Range preimage(Range to, std::int64_t offset, std::int64_t step, Range source);

// Along one dimension: block number `part` of the other side meets this range of destination indices.
struct Meeting {
  std::int64_t part;
  Range to;
};
// Source blocks that the destination range reads, in destination order.
void meet_source_parts(std::vector<Meeting>&, Range to, std::int64_t offset, std::int64_t step,
                       std::int64_t source_extent, std::int64_t parts);
// Destination blocks that hold part of the range.
void meet_destination_parts(std::vector<Meeting>&, Range to, std::int64_t extent, std::int64_t parts);

// From one source sharding to the destination: a pair of layouts, on one mesh where one mesh can express
// both.
class Route {
 public:
  Route(const Sharding& from, const Sharding& to, const MeshAxes& fixed_axes);

  const Sharding::Impl& from() const { return *from_.identity(); }
  const Sharding::Impl& to() const { return *to_.identity(); }
  bool on_one_mesh() const { return on_one_mesh_; }

  // The source position of the device at this position of the destination mesh; -1 if it is not in the source
  // mesh.
  int source_position(int receiver) const {
    return on_one_mesh_ ? receiver : from().mesh.position(to().mesh.device_ids()[receiver]);
  }
  // The position in the source mesh of the device that gives block `source_parts` to the receiver. Both
  // sides compute the same.
  int server(std::span<const std::int64_t> source_parts, int receiver) const;
  // Positions in the destination mesh of all devices that hold this destination block and may be served by
  // `source_position`.
  void receivers(std::vector<int>& out, std::span<const std::int64_t> destination_parts,
                 int source_position) const;

 private:
  bool holds(std::span<const std::int64_t> source_parts, int source_position) const;

  Sharding from_, to_;
  bool on_one_mesh_ = false;
  std::vector<bool> own_coordinate_;  // of each replica axis of `from`: the server has the receiver's
                                      // coordinate, else it is spread
  std::vector<AxisDigit>
      spread_by_;  // receiver coordinates that choose among the holders along the other axes
  std::vector<AxisDigit> fixed_, free_replicas_;  // of `to`
};

// Facts about moving one remap, without making any rank's plan.
struct Survey {
  std::int64_t elements = 0;  // that the busiest device receives from others
  std::int64_t peers = 0;     // blocks that the busiest device receives from others
  bool in_place = true;       // every device already holds exactly its destination box (identity remaps only)
};
Survey survey_exchange(const Remap&, std::span<const Sharding> from, std::span<const Shape> from_shapes,
                       const Sharding& to, const Shape& shape, const MeshAxes& fixed_axes);
// The same for a reshard on one mesh, quickly.
Survey survey_reshard(const Sharding::Impl& from, const Sharding::Impl& to, const Shape& shape);

}  // namespace tessera
