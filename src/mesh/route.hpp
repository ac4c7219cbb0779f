// The intersections of a source sharding's blocks with a destination sharding's, and the holder of a block
// that serves each receiver.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "mesh/remap.hpp"
#include "mesh/sharding_impl.hpp"

namespace tessera {

// The i in `to` with offset + step * i in `source`; a range, because the map is monotone.
Range preimage(Range to, std::int64_t offset, std::int64_t step, Range source);

// An intersection along one dim: block `part` of the other side covers this range of destination indices.
struct CommonPart {
  std::int64_t part;
  Range to;
};
// Source blocks that the destination range reads, in destination order.
void common_source_parts(std::vector<CommonPart>&, Range to, std::int64_t offset, std::int64_t step,
                         std::int64_t source_extent, std::int64_t parts);
// Destination blocks that hold part of the range.
void common_destination_parts(std::vector<CommonPart>&, Range to, std::int64_t extent, std::int64_t parts);

// The pair of a source sharding and the destination, on one mesh if one can express both.
class Route {
 public:
  Route(const Sharding& from, const Sharding& to, const MeshAxes& fixed_axes);

  const Sharding::Impl& from() const { return *from_.identity(); }
  const Sharding::Impl& to() const { return *to_.identity(); }
  bool on_one_mesh() const { return on_one_mesh_; }

  // The source mesh position of the device at this position of the destination mesh; -1 if it is not in the
  // source mesh.
  int source_position(int receiver) const {
    return on_one_mesh_ ? receiver : from().mesh.position(to().mesh.device_ids()[receiver]);
  }
  // The source mesh position of the device that sends block `source_parts` to the receiver. Both sides
  // compute the same.
  int server(std::span<const std::int64_t> source_parts, int receiver) const;
  // Positions in the destination mesh of all devices that hold this destination block and may be served by
  // `source_position`.
  void receivers(std::vector<int>& out, std::span<const std::int64_t> destination_parts,
                 int source_position) const;

 private:
  bool holds(std::span<const std::int64_t> source_parts, int source_position) const;

  Sharding from_, to_;
  bool on_one_mesh_ = false;
  // Per replica axis of `from`: whether the server has the receiver's coordinate, or the axis is spread.
  std::vector<bool> own_coordinate_;
  std::vector<AxisDigit>
      spread_by_;  // receiver coordinates that choose among the holders along the other axes
  std::vector<AxisDigit> fixed_, free_replicas_;  // digits of `to`
};

// The volume of a remap's traffic, computed without any rank's plan.
struct Survey {
  std::int64_t elements = 0;  // received by the busiest device from others
  std::int64_t peers = 0;     // blocks received by the busiest device from others
  bool in_place = true;       // every device already holds exactly its destination box (identity remaps only)
};
Survey survey_exchange(const Remap&, std::span<const Sharding> from, std::span<const Shape> from_shapes,
                       const Sharding& to, const Shape& shape, const MeshAxes& fixed_axes);
// The same for a reshard on one mesh, computed faster.
Survey survey_reshard(const Sharding::Impl& from, const Sharding::Impl& to, const Shape& shape);

}  // namespace tessera
