// Bytes that a remap moves, counted in closed form for each device: a device receives every element of its
// destination box that its own source box lacks, once. Devices that differ only along axes that neither
// layout uses are counted once.
#include <algorithm>

#include "mesh/route.hpp"

namespace tessera {
namespace {

struct Load {
  std::int64_t elements = 0, peers = 0;
  bool in_place = true;
};

std::int64_t parts_met(const RemapPiece& piece, std::size_t d, Range mine, const Sharding::Impl& from,
                       std::int64_t extent) {
  const std::int64_t parts = from.parts_of(d);
  if (parts == 1) return 1;
  const std::int64_t block = block_size(extent, parts);
  const std::int64_t first = (piece.offset[d] + piece.step[d] * mine.start) / block;
  const std::int64_t last = (piece.offset[d] + piece.step[d] * (mine.stop - 1)) / block;
  return std::min(last > first ? last - first : first - last, mine.size() - 1) + 1;
}

// Elements of a piece that a receiver needs along one dim, and those of them that it has.
struct DimLoad {
  std::int64_t needed = 0, held = 0, own_elements = 1, blocks = 1;
  bool same_box = false;
  friend bool operator==(const DimLoad&, const DimLoad&) = default;
};
DimLoad load_along(std::size_t d, const RemapPiece& piece, const Route& route, const Shape& from_shape,
                   const Shape& shape, int receiver) {
  DimLoad load;
  const int here = route.source_position(receiver);
  const Range box = route.to().range(d, shape[d], receiver);
  const Range mine{std::max(box.start, piece.to[d].start), std::min(box.stop, piece.to[d].stop)};
  if (here >= 0) {
    const Range own = route.from().range(d, from_shape[d], here);
    load.same_box = own.start == box.start && own.stop == box.stop;
    load.own_elements = own.size();
    load.held = mine.size() > 0 ? preimage(mine, piece.offset[d], piece.step[d], own).size() : 0;
  }
  load.needed = std::max<std::int64_t>(0, mine.size());
  if (load.needed > 0) load.blocks = parts_met(piece, d, mine, route.from(), from_shape[d]);
  return load;
}

void add_piece(Load& load, const RemapPiece& piece, const Route& route, const Shape& from_shape,
               const Shape& shape, int receiver) {
  const bool has_source = route.source_position(receiver) >= 0;
  DimLoad all{1, has_source ? 1 : 0, 1, 1, has_source};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto along = load_along(d, piece, route, from_shape, shape, receiver);
    all.needed *= along.needed, all.held *= along.held, all.own_elements *= along.own_elements;
    if (all.needed > 0) all.blocks *= along.blocks;
    all.same_box = all.same_box && along.same_box;
  }
  load.in_place = load.in_place && (all.same_box || (has_source && all.needed == 0 && all.own_elements == 0));
  load.elements += all.needed - all.held;
  if (all.needed > all.held) load.peers += all.blocks - (all.held > 0);
}

// The dim that this digit alone splits, in both layouts or one of them; -1: others take part.
int dim_of_only(const AxisDigit& digit, const Route& route, int ndim) {
  int found = -1;
  for (const auto* side : {&route.from(), &route.to()})
    for (int d = 0; d < std::min(ndim, side->split_dims()); ++d) {
      const auto first = side->digits.begin() + side->first[d],
                 last = side->digits.begin() + side->first[d + 1];
      if (std::find(first, last, digit) == last) continue;
      if (last - first != 1 || (found >= 0 && found != d)) return -1;
      found = d;
    }
  for (const auto* side : {&route.from(), &route.to()})
    if (found >= 0 && found < side->split_dims() && side->parts_of(found) > 1 &&
        !(side->digits[side->first[found]] == digit))
      return -1;
  return found;
}

// The coordinates along the digit that change what a receiver needs or has; all coordinates if a dim has
// several digits.
std::vector<int> distinct_coordinates(const AxisDigit& digit, const Remap& remap, const Route& route,
                                      const Shape& from_shape, const Shape& shape) {
  constexpr int few = 8;
  std::vector<int> coordinates;
  const int dim = digit.size > few ? dim_of_only(digit, route, static_cast<int>(shape.size())) : -1;
  std::vector<std::vector<DimLoad>> seen;
  for (int c = 0; c < digit.size; ++c) {
    if (dim >= 0) {
      std::vector<DimLoad> loads;
      for (const auto& piece : remap.pieces)
        loads.push_back(
            load_along(static_cast<std::size_t>(dim), piece, route, from_shape, shape, c * digit.stride));
      if (std::find(seen.begin(), seen.end(), loads) != seen.end()) continue;
      seen.push_back(std::move(loads));
    }
    coordinates.push_back(c);
  }
  return coordinates;
}

// One position of the destination mesh for each setting of the axes that affect the traffic.
std::vector<int> distinct_positions(const Remap& remap, const std::vector<Route>& routes,
                                    std::span<const Shape> from_shapes, const Shape& shape) {
  std::vector<int> positions;
  if (std::any_of(routes.begin(), routes.end(), [](const Route& route) { return !route.on_one_mesh(); }) ||
      routes.size() != 1) {
    const int all = routes.empty() ? 0 : routes[0].to().mesh.size();
    for (int p = 0; p < all; ++p) positions.push_back(p);
    return positions;
  }
  positions.push_back(0);
  const Route& route = routes[0];
  const auto grow = [&](const AxisDigit& digit) {
    std::vector<int> grown;
    for (const int c : distinct_coordinates(digit, remap, route, from_shapes[0], shape))
      for (const int position : positions) grown.push_back(position + c * digit.stride);
    positions = std::move(grown);
  };
  for (const auto& digit : route.to().digits) grow(digit);
  for (const auto& digit : route.from().digits)
    if (std::find(route.to().digits.begin(), route.to().digits.end(), digit) == route.to().digits.end())
      grow(digit);
  return positions;
}

}  // namespace

Survey survey_reshard(const Sharding::Impl& from, const Sharding::Impl& to, const Shape& shape) {
  std::vector<int> positions = {0};
  const auto grow = [&](const AxisDigit& digit) {
    const std::size_t count = positions.size();
    positions.reserve(count * static_cast<std::size_t>(digit.size));
    for (int c = 1; c < digit.size; ++c)
      for (std::size_t i = 0; i < count; ++i) positions.push_back(positions[i] + c * digit.stride);
  };
  for (const auto& digit : to.digits) grow(digit);
  for (const auto& digit : from.digits)
    if (std::find(to.digits.begin(), to.digits.end(), digit) == to.digits.end()) grow(digit);

  std::int64_t unsplit = 1;  // elements along dims that neither layout splits
  std::vector<std::size_t> split_dims;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (from.parts_of(d) == 1 && to.parts_of(d) == 1)
      unsplit *= shape[d];
    else
      split_dims.push_back(d);
  }
  Survey survey;
  for (int position : positions) {
    std::int64_t needed = unsplit, held = unsplit, own_elements = unsplit, blocks = 1;
    bool same_box = true;
    for (std::size_t d : split_dims) {
      const Range mine = to.range(d, shape[d], position), own = from.range(d, shape[d], position);
      needed *= mine.size();
      own_elements *= own.size();
      held *= std::max<std::int64_t>(0, std::min(mine.stop, own.stop) - std::max(mine.start, own.start));
      same_box = same_box && mine == own;
      if (const std::int64_t block = block_size(shape[d], from.parts_of(d));
          mine.size() > 0 && from.parts_of(d) > 1)
        blocks *= (mine.stop - 1) / block - mine.start / block + 1;
    }
    survey.in_place = survey.in_place && (same_box || (needed == 0 && own_elements == 0));
    survey.elements = std::max(survey.elements, needed - held);
    if (needed > held) survey.peers = std::max(survey.peers, blocks - (held > 0));
  }
  return survey;
}

Survey survey_exchange(const Remap& remap, std::span<const Sharding> from, std::span<const Shape> from_shapes,
                       const Sharding& to, const Shape& shape, const MeshAxes& fixed_axes) {
  std::vector<Route> routes;
  routes.reserve(from.size());
  for (const auto& source : from) routes.emplace_back(source, to, fixed_axes);
  Survey survey;
  for (const auto& route : routes)
    survey.in_place = survey.in_place && route.from().mesh.size() == route.to().mesh.size();
  for (int receiver : distinct_positions(remap, routes, from_shapes, shape)) {
    Load load;
    for (const auto& piece : remap.pieces) {
      const auto s = static_cast<std::size_t>(piece.source);
      add_piece(load, piece, routes[s], from_shapes[s], shape, receiver);
    }
    survey.elements = std::max(survey.elements, load.elements);
    survey.peers = std::max(survey.peers, load.peers);
    survey.in_place = survey.in_place && load.in_place;
  }
  return survey;
}

}  // namespace tessera
