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

void add_piece(Load& load, const RemapPiece& piece, const Route& route, const Shape& from_shape,
               const Shape& shape, int receiver) {
  std::int64_t needed = 1, held = 1, own_elements = 1, blocks = 1;
  const int here = route.source_position(receiver);
  bool same_box = here >= 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const Range box = route.to().range(d, shape[d], receiver);
    const Range mine{std::max(box.start, piece.to[d].start), std::min(box.stop, piece.to[d].stop)};
    if (here >= 0) {
      const Range own = route.from().range(d, from_shape[d], here);
      same_box = same_box && own.start == box.start && own.stop == box.stop;
      own_elements *= own.size();
      held *= mine.size() > 0 ? preimage(mine, piece.offset[d], piece.step[d], own).size() : 0;
    }
    needed *= std::max<std::int64_t>(0, mine.size());
    if (needed > 0) blocks *= parts_met(piece, d, mine, route.from(), from_shape[d]);
  }
  if (here < 0) held = 0;
  load.in_place = load.in_place && (same_box || (here >= 0 && needed == 0 && own_elements == 0));
  load.elements += needed - held;
  if (needed > held) load.peers += blocks - (held > 0);
}

// One position of the destination mesh for each setting of the axes that affect the traffic.
std::vector<int> distinct_positions(const std::vector<Route>& routes) {
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
    const std::size_t count = positions.size();
    for (int c = 1; c < digit.size; ++c)
      for (std::size_t i = 0; i < count; ++i) positions.push_back(positions[i] + c * digit.stride);
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
  for (int receiver : distinct_positions(routes)) {
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
