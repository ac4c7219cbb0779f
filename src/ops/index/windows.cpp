#include "ops/index/windows.hpp"

#include <algorithm>

namespace tessera {

std::int64_t parts_along(const Sharding& sharding, int dim, int ndim) {
  return devices_along(sharding.mesh(), sharding.dim_axes(ndim)[dim]);
}

int fetch_windows(ProgramBuilder& builder, int v, int dim, const Sharding& like,
                  const std::function<Range(std::int64_t, std::int64_t)>& window) {
  const Type type = builder.value(v).type;
  const int ndim = type.shape.ndim();
  const auto d = static_cast<std::size_t>(dim);
  const auto parts = parts_along(like, dim, ndim);
  if (parts == 1 && window(0, 1) == Range{0, type.shape[d]}) return builder.reshard(v, like);
  std::int64_t longest = 0;
  for (std::int64_t part = 0; part < parts; ++part) longest = std::max(longest, window(part, parts).size());
  Type packed = type;
  packed.shape[d] = longest * parts;
  Remap map;
  for (std::int64_t part = 0; part < parts; ++part) {
    const Range range = window(part, parts);
    if (range.size() <= 0) continue;
    RemapPiece piece{0, whole_box(packed.shape), std::vector<std::int64_t>(type.shape.size(), 0),
                     std::vector<std::int64_t>(type.shape.size(), 1)};
    piece.to[d] = {part * longest, part * longest + range.size()};
    piece.offset[d] = range.start - part * longest;
    map.pieces.push_back(std::move(piece));
  }
  return builder.remap(std::move(map), {v}, std::move(packed), like);
}

}  // namespace tessera
