#include "io/formats/zarr/grid.hpp"

#include <algorithm>
#include <limits>

namespace tessera::io::zarr {

void for_each_chunk(const Shape& chunk, const Box& box, const std::function<void(const ChunkIndex&)>& visit) {
  if (is_empty(box)) return;
  ChunkIndex first, last, at;
  for (std::size_t d = 0; d < box.size(); ++d) {
    first.push_back(box[d].start / chunk[d]);
    last.push_back((box[d].stop - 1) / chunk[d]);
  }
  at = first;
  while (true) {
    visit(at);
    std::size_t d = at.size();
    while (d > 0 && at[d - 1] == last[d - 1]) --d, at[d] = first[d];
    if (d == 0) return;
    ++at[d - 1];
  }
}

Box box_of(const Shape& chunk, const ChunkIndex& place) {
  Box box;
  for (std::size_t d = 0; d < place.size(); ++d) {
    const std::int64_t start = place[d] * chunk[d], rest = std::numeric_limits<std::int64_t>::max() - start;
    box.push_back({start, start + std::min(chunk[d], rest)});
  }
  return box;
}
Box within(const Box& outer, const Box& box) {
  Box inside;
  for (std::size_t d = 0; d < box.size(); ++d)
    inside.push_back({box[d].start - outer[d].start, box[d].stop - outer[d].start});
  return inside;
}
std::int64_t offset_of(const Box& box, const std::vector<std::int64_t>& strides) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < box.size(); ++d) offset += box[d].start * strides[d];
  return offset;
}

std::string key_of(const ArrayMeta& meta, const ChunkIndex& place) {
  std::string key = meta.has_v2_keys ? "" : "c";
  for (const auto number : place) {
    if (!key.empty()) key += meta.separator;
    key += std::to_string(number);
  }
  return key.empty() ? "0" : key;
}

}  // namespace tessera::io::zarr
