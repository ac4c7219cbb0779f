#include "io/formats/zarr/chunk_plan.hpp"

#include <algorithm>
#include <numeric>

namespace tessera::io::zarr {
namespace {

int owner_of(const ChunkIndex& place, const std::vector<ChunkPart>& parts) {
  std::int64_t most = 0;
  for (const ChunkPart& part : parts) most = std::max(most, box_elements(part.box));
  std::vector<int> largest;
  for (const ChunkPart& part : parts)
    if (box_elements(part.box) == most) largest.push_back(part.device);
  const std::int64_t number = std::accumulate(place.begin(), place.end(), std::int64_t{0});
  return largest[static_cast<std::size_t>(number) % largest.size()];
}

}  // namespace

ChunkPlan plan_chunks(const Shape& chunk, const std::vector<Writer>& writers, int device) {
  ChunkPlan plan;
  const auto own = std::find_if(writers.begin(), writers.end(),
                                [&](const Writer& writer) { return writer.device == device; });
  if (own == writers.end()) return plan;
  for_each_chunk(chunk, own->box, [&](const ChunkIndex& place) {
    const Box box = box_of(chunk, place);
    OwnedChunk found{place, {}};
    if (contains(own->box, box)) {
      found.parts.push_back({device, box});
      plan.owned.push_back(std::move(found));
      return;
    }
    for (const Writer& writer : writers)
      if (const Box part = intersect(box, writer.box); !is_empty(part))
        found.parts.push_back({writer.device, part});
    const int owner = owner_of(place, found.parts);
    if (owner == device)
      plan.owned.push_back(std::move(found));
    else
      plan.sends.push_back({owner, intersect(box, own->box)});
  });
  return plan;
}

}  // namespace tessera::io::zarr
