#include "viz/blocks.hpp"

#include <algorithm>
#include <ostream>
#include <sstream>

#include "mesh/axes.hpp"
#include "types/box.hpp"

namespace tessera::viz {

int BlockGrid::block_at(const std::vector<int>& numbers) const {
  int block = 0;
  for (std::size_t d = 0; d < ranges.size(); ++d)
    block = block * blocks_along(static_cast<int>(d)) + numbers[d];
  return block;
}

std::vector<int> BlockGrid::numbers_of(int block) const {
  std::vector<int> numbers(ranges.size());
  for (int d = shape.ndim() - 1; d >= 0; --d) {
    numbers[d] = block % blocks_along(d);
    block /= blocks_along(d);
  }
  return numbers;
}

Index BlockGrid::box(int block) const {
  std::vector<int> numbers = numbers_of(block);
  Index box;
  for (std::size_t d = 0; d < ranges.size(); ++d) box.push_back(ranges[d][numbers[d]]);
  return box;
}

Shape BlockGrid::block_shape(int block) const {
  std::vector<std::int64_t> extents;
  for (const Range& range : box(block)) extents.push_back(range.size());
  return Shape(std::move(extents));
}

bool BlockGrid::is_even(int dim) const {
  std::int64_t first = ranges[dim].front().size();
  return first > 0 && std::all_of(ranges[dim].begin(), ranges[dim].end(),
                                  [=](const Range& r) { return r.size() == first; });
}

BlockGrid block_grid(const Shape& shape, const Sharding& sharding, const char* call) {
  sharding.check_fits(shape, call);
  const Mesh mesh = sharding.mesh();
  const std::vector<int>& sizes = mesh.axis_sizes();
  const std::vector<int>& ids = mesh.device_ids();
  const DimAxes dim_axes = sharding.dim_axes(shape.ndim());

  BlockGrid grid{shape, {}, {}};
  int blocks = 1;
  for (int d = 0; d < shape.ndim(); ++d) {
    const auto parts = static_cast<int>(devices_along(mesh, dim_axes[d]));
    std::vector<Range>& along = grid.ranges.emplace_back();
    for (int part = 0; part < parts; ++part) along.push_back(block_range(shape[d], parts, part));
    blocks *= parts;
  }

  // The block of a device: its mesh coordinates as digits, in the order in which the axes split the dims.
  grid.holders.resize(blocks);
  std::vector<int> coords(sizes.size());
  for (std::size_t position = 0; position < ids.size(); ++position) {
    std::size_t rest = position;
    for (std::size_t axis = sizes.size(); axis-- > 0;) {
      coords[axis] = static_cast<int>(rest % sizes[axis]);
      rest /= sizes[axis];
    }
    int block = 0;
    for (const MeshAxes& axes : dim_axes) {
      for (int axis : axes) block = block * sizes[axis] + coords[axis];
    }
    grid.holders[block].push_back(ids[position]);
  }
  for (std::vector<int>& set : grid.holders) std::sort(set.begin(), set.end());
  return grid;
}

std::string text_of(const Sharding& sharding) {
  std::ostringstream text;
  text << sharding;
  return text.str();
}

std::string text_of(const Mesh& mesh) {
  std::ostringstream text;
  text << mesh;
  return text.str();
}

}  // namespace tessera::viz
