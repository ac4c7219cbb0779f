#include "mesh/remap.hpp"

#include <algorithm>
#include <tuple>

#include "mesh/route.hpp"

namespace tessera {
namespace {

// Visits every combination of one common part per dim.
template <class Visit> void for_each_block(const std::vector<std::vector<CommonPart>>& common, Visit visit) {
  const std::size_t ndim = common.size();
  for (const auto& along : common)
    if (along.empty()) return;
  std::vector<std::size_t> at(ndim, 0);
  std::vector<std::int64_t> parts(ndim);
  Index to(ndim);
  for (;;) {
    for (std::size_t d = 0; d < ndim; ++d) parts[d] = common[d][at[d]].part, to[d] = common[d][at[d]].to;
    visit(parts, to);
    std::size_t d = ndim;
    while (d > 0 && ++at[d - 1] == common[d - 1].size()) at[--d] = 0;
    if (d == 0) return;
  }
}

class Planner {
 public:
  Planner(const Remap& remap, std::span<const Sharding> from, std::span<const Shape> from_shapes,
          const Sharding& to, const Shape& shape, int me, const MeshAxes& fixed_axes)
      : remap_(remap), from_shapes_(from_shapes), shape_(shape), me_(me) {
    routes_.reserve(from.size());
    for (const auto& source : from) routes_.emplace_back(source, to, fixed_axes);
  }

  ExchangePlan plan() {
    for (std::size_t p = 0; p < remap_.pieces.size(); ++p) {
      if (box_elements(remap_.pieces[p].to) == 0 && !remap_.pieces[p].to.empty()) continue;
      add_receives(static_cast<int>(p));
      add_sends(static_cast<int>(p));
    }
    // Both sides derive the same order, since a pair of devices has at most one block of each piece.
    const auto by_peer = [](const Transfer& a, const Transfer& b) {
      return std::tie(a.peer, a.piece) < std::tie(b.peer, b.piece);
    };
    std::sort(plan_.sends.begin(), plan_.sends.end(), by_peer);
    std::sort(plan_.receives.begin(), plan_.receives.end(), by_peer);
    return std::move(plan_);
  }

 private:
  const Route& route(const RemapPiece& piece) const { return routes_[piece.source]; }

  void add_receives(int number) {
    const RemapPiece& piece = remap_.pieces[number];
    const Route& route = this->route(piece);
    const Shape& from_shape = from_shapes_[piece.source];
    const int here = route.to().mesh.position(me_);
    if (here < 0) return;
    std::vector<std::vector<CommonPart>> common(shape_.size());
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      const Range mine = intersect({route.to().range(d, shape_[d], here)}, {piece.to[d]})[0];
      common_source_parts(common[d], mine, piece.offset[d], piece.step[d], from_shape[d],
                          route.from().parts_of(d));
    }
    const auto& ids = route.from().mesh.device_ids();
    for_each_block(common, [&](const std::vector<std::int64_t>& parts, const Index& to) {
      const int peer = ids[route.server(parts, here)];
      (peer == me_ ? plan_.local : plan_.receives).push_back({peer, number, to});
    });
  }

  void add_sends(int number) {
    const RemapPiece& piece = remap_.pieces[number];
    const Route& route = this->route(piece);
    const Shape& from_shape = from_shapes_[piece.source];
    const int here = route.from().mesh.position(me_);
    if (here < 0) return;
    std::vector<std::int64_t> my_parts(shape_.size());
    std::vector<std::vector<CommonPart>> common(shape_.size());
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      my_parts[d] = route.from().part(d, here);
      const Range read =
          preimage(piece.to[d], piece.offset[d], piece.step[d], route.from().range(d, from_shape[d], here));
      common_destination_parts(common[d], read, shape_[d], route.to().parts_of(d));
    }
    const auto& ids = route.to().mesh.device_ids();
    std::vector<int> receivers;
    for_each_block(common, [&](const std::vector<std::int64_t>& parts, const Index& to) {
      route.receivers(receivers, parts, here);
      for (int receiver : receivers) {
        const int peer = ids[receiver];
        if (peer != me_ && route.server(my_parts, receiver) == here)
          plan_.sends.push_back({peer, number, to});
      }
    });
  }

  const Remap& remap_;
  std::span<const Shape> from_shapes_;
  const Shape& shape_;
  int me_;
  std::vector<Route> routes_;
  ExchangePlan plan_;
};

}  // namespace

Remap identity_remap(const Shape& shape) {
  return {{RemapPiece{0, whole_box(shape), std::vector<std::int64_t>(shape.size(), 0),
                      std::vector<std::int64_t>(shape.size(), 1)}}};
}

ExchangePlan plan_exchange(const Remap& remap, std::span<const Sharding> from,
                           std::span<const Shape> from_shapes, const Sharding& to, const Shape& shape, int me,
                           const MeshAxes& fixed_axes) {
  return Planner(remap, from, from_shapes, to, shape, me, fixed_axes).plan();
}

std::int64_t exchange_bytes(const Remap& remap, std::span<const Sharding> from,
                            std::span<const Shape> from_shapes, const Sharding& to, const Shape& shape,
                            std::size_t itemsize, const MeshAxes& fixed_axes) {
  return survey_exchange(remap, from, from_shapes, to, shape, fixed_axes).elements *
         static_cast<std::int64_t>(itemsize);
}

}  // namespace tessera
