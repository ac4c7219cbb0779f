// Lines along the last dim: their number in a block, and layouts of ops that read complete lines.
#pragma once
#include <optional>
#include <utility>

#include "graph/op.hpp"
#include "mesh/axes.hpp"

namespace tessera {

inline std::int64_t line_count(const Tile& tile) {
  std::int64_t lines = 1;
  for (std::size_t d = 0; d + 1 < tile.box.size(); ++d) lines *= tile.box[d].size();
  return lines;
}

// Keeps the operand's layout; the results are unsplit along the last dim.
inline Placement place_selected(const PlacementArgs& args) {
  const int ndim = args.in[0].shape.ndim();
  auto dims = args.shardings[0] ? args.shardings[0]->dim_axes(ndim)
              : args.wanted     ? args.wanted->dim_axes(ndim)
                                : std::vector<std::vector<int>>(ndim);
  const Mesh mesh = args.shardings[0] ? args.shardings[0]->mesh() : args.mesh;
  if (!args.shardings[0]) dims.back().clear();
  const Sharding in = Sharding::from_dim_axes(mesh, dims);
  dims.back().clear();
  return {
      {in}, std::vector<Sharding>(args.out.size(), Sharding::from_dim_axes(mesh, dims)), {}, ReduceKind::sum};
}

// The layout in which the axes that split the lines split the dim with the most lines per part instead;
// nullopt if no dim has a line for each part.
inline std::optional<Sharding> with_whole_lines(const Shape& shape, const Sharding& layout) {
  auto dims = layout.dim_axes(shape.ndim());
  const auto axes = std::exchange(dims.back(), {});
  const auto parts = devices_along(layout.mesh(), axes);
  std::size_t best = 0;
  std::int64_t most = 0;
  for (std::size_t d = 0; d + 1 < shape.size(); ++d)
    if (const auto lines = shape[d] / (devices_along(layout.mesh(), dims[d]) * parts); lines > most)
      best = d, most = lines;
  if (most == 0) return std::nullopt;
  dims[best].insert(dims[best].end(), axes.begin(), axes.end());
  return Sharding::from_dim_axes(layout.mesh(), dims);
}

}  // namespace tessera
