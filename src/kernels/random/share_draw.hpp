// Splits a draw among threads: an element's value depends on its position only.
#pragma once
#include "kernels/parallel.hpp"
#include "kernels/random/draws.hpp"

namespace tessera::kernels {

// Calls work(part of the draw, index of its first element in the draw). Parts are ranges of keys, or of the
// first dim that has more than one row.
template <class Work> void share_draw(const DrawBlock& draw, Work&& work) {
  constexpr std::int64_t least = 16384;  // elements
  const std::int64_t elements = box_elements(draw.box), keys = static_cast<std::int64_t>(draw.keys.size());
  std::size_t d = 0;
  while (d < draw.box.size() && draw.box[d].size() == 1) ++d;
  if (elements == 0 || keys == 0 || (keys == 1 && d == draw.box.size())) return work(draw, std::int64_t{0});
  const std::int64_t rows = keys > 1 ? keys : draw.box[d].size(), inner = keys * elements / rows;
  share(rows, std::max<std::int64_t>(least / inner, 1), [&](std::int64_t begin, std::int64_t end) {
    DrawBlock part = draw;
    if (keys > 1) {
      part.keys = draw.keys.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
      return work(part, begin * inner);
    }
    Box box = draw.box;
    box[d] = {draw.box[d].start + begin, draw.box[d].start + end};
    work(DrawBlock{draw.keys, box, draw.global, draw.mode}, begin * inner);
  });
}

}  // namespace tessera::kernels
