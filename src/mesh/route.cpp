#include "mesh/route.hpp"

#include <tessera/error.hpp>

#include <algorithm>

#include "mesh/reshard.hpp"

namespace tessera {
namespace {

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return -floor_div(-a, b); }

bool names_axis(const MeshAxes& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

// The dim that an axis splits; -1 for a replica axis.
int dim_of(const Sharding::Impl& impl, int axis) {
  for (int d = 0; d < impl.split_dims(); ++d)
    for (int k = impl.first[d]; k < impl.first[d + 1]; ++k)
      if (impl.digits[k].axis == axis) return d;
  return -1;
}

// The part of the mesh position that the given block numbers determine.
int position_of_block(const Sharding::Impl& impl, std::span<const std::int64_t> parts) {
  int position = 0;
  for (std::size_t d = 0; d < impl.parts.size(); ++d) {
    std::int64_t part = parts[d];
    for (int k = impl.first[d + 1]; k-- > impl.first[d];) {
      const AxisDigit& digit = impl.digits[k];
      position += static_cast<int>(part % digit.size) * digit.stride;
      part /= digit.size;
    }
  }
  return position;
}

}  // namespace

Range preimage(Range to, std::int64_t offset, std::int64_t step, Range source) {
  Range hit = to;
  if (step > 0)
    hit = {ceil_div(source.start - offset, step), ceil_div(source.stop - offset, step)};
  else if (step < 0)
    hit = {floor_div(offset - source.stop, -step) + 1, floor_div(offset - source.start, -step) + 1};
  else if (offset < source.start || offset >= source.stop)
    hit.stop = hit.start;
  hit.start = std::max(hit.start, to.start);
  hit.stop = std::max(hit.start, std::min(hit.stop, to.stop));
  return hit;
}

void common_source_parts(std::vector<CommonPart>& common, Range to, std::int64_t offset, std::int64_t step,
                         std::int64_t source_extent, std::int64_t parts) {
  common.clear();
  if (to.size() <= 0) return;
  if (parts == 1) return common.push_back({0, to});
  const std::int64_t block = block_size(source_extent, parts);
  const std::int64_t first = (offset + step * to.start) / block,
                     last = (offset + step * (to.stop - 1)) / block;
  const std::int64_t towards = last >= first ? 1 : -1;
  for (std::int64_t part = first; part != last + towards; part += towards) {
    const Range hit = preimage(to, offset, step, {part * block, std::min(source_extent, (part + 1) * block)});
    if (hit.size() > 0) common.push_back({part, hit});
  }
}

void common_destination_parts(std::vector<CommonPart>& common, Range to, std::int64_t extent,
                              std::int64_t parts) {
  common_source_parts(common, to, 0, 1, extent, parts);
}

// Chooses the replica that serves a receiver. Along axes that neither side splits, and axes that do not
// affect the source block, the server has the receiver's own coordinate: messages stay inside the mesh axes
// that change, and fixed axes are never crossed. Along an axis u that the destination uses on a dim that
// other axes split in the source, the receiver's coordinate follows from the block that it needs, so one
// holder would serve all receivers; there the receivers' other coordinates are spread over the holders.
//
//   2 x 2 mesh, P('x') -> P('y'): device (i, j) needs block j, held by (j, 0) and (j, 1); it asks (j, i).
//     One message each way.
Route::Route(const Sharding& from, const Sharding& to, const MeshAxes& fixed_axes) : from_(from), to_(to) {
  const auto common = on_common_mesh({from, to});
  on_one_mesh_ = !common.empty();
  if (!fixed_axes.empty() && !(from.identity()->mesh == to.identity()->mesh))
    throw InternalError("plan_exchange: fixed axes need one mesh on both sides");
  if (on_one_mesh_) from_ = common[0], to_ = common[1];
  const Sharding::Impl &source = this->from(), &destination = this->to();
  for (int axis : fixed_axes)
    if (dim_of(source, axis) >= 0 || dim_of(destination, axis) >= 0)
      throw InternalError("plan_exchange: fixed axis '" + source.mesh.axis_names()[axis] +
                          "' splits a dimension");
  for (const auto& replica : destination.replicas)
    (names_axis(fixed_axes, replica.axis) ? fixed_ : free_replicas_).push_back(replica);
  if (!on_one_mesh_) return;
  for (const auto& replica : source.replicas) {
    const int dim = dim_of(destination, replica.axis);
    own_coordinate_.push_back(dim < 0 || source.parts_of(dim) == 1);
  }
  for (int moved = 1; moved >= 0; --moved)
    for (int d = 0; d < source.split_dims(); ++d)
      for (int k = source.first[d]; k < source.first[d + 1]; ++k) {
        const AxisDigit& digit = source.digits[k];
        if ((dim_of(destination, digit.axis) != d) == (moved == 1)) spread_by_.push_back(digit);
      }
}

bool Route::holds(std::span<const std::int64_t> source_parts, int source_position) const {
  for (std::size_t d = 0; d < from().parts.size(); ++d)
    if (from().part(d, source_position) != source_parts[d]) return false;
  return true;
}

int Route::server(std::span<const std::int64_t> source_parts, int receiver) const {
  const int here = source_position(receiver);
  if (here >= 0 && holds(source_parts, here)) return here;
  int position = position_of_block(from(), source_parts);
  if (on_one_mesh_) {
    int spread = 0, weight = 1;
    for (const auto& digit : spread_by_) {
      spread += digit.coordinate(receiver) * weight;
      weight *= digit.size;
    }
    for (std::size_t r = 0; r < from().replicas.size(); ++r) {
      const AxisDigit& replica = from().replicas[r];
      if (own_coordinate_[r]) {
        position += replica.coordinate(receiver) * replica.stride;
      } else {
        position += spread % replica.size * replica.stride;
        spread /= replica.size;
      }
    }
    return position;
  }
  int turn =
      0;  // counts the destination's blocks, then replicas: neighbours in this order get different servers
  for (const auto& replica : to().replicas) turn = turn * replica.size + replica.coordinate(receiver);
  for (std::size_t d = 0; d < to().parts.size(); ++d) turn += static_cast<int>(to().part(d, receiver));
  for (auto replica = from().replicas.rbegin(); replica != from().replicas.rend(); ++replica) {
    position += turn % replica->size * replica->stride;
    turn /= replica->size;
  }
  return position;
}

void Route::receivers(std::vector<int>& out, std::span<const std::int64_t> destination_parts,
                      int source_position) const {
  int position = position_of_block(to(), destination_parts);
  for (const auto& digit : fixed_) position += digit.coordinate(source_position) * digit.stride;
  out.assign(1, position);
  for (const auto& replica : free_replicas_) {
    const std::size_t count = out.size();
    for (int c = 1; c < replica.size; ++c)
      for (std::size_t i = 0; i < count; ++i) out.push_back(out[i] + c * replica.stride);
  }
}

}  // namespace tessera
