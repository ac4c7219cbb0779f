// Lengths of transforms: cropped and padded extents, and those that are transformed fast.
#include "ops/fourier/fft_op.hpp"
#include "ops/index/remap_op.hpp"

namespace tessera {

Array record_fft_resize(const Array& x, Shape extents) {
  if (x.shape() == extents) return x;
  RemapPiece kept = whole_piece(0, x.shape(), std::vector<std::int64_t>(extents.size(), 0));
  for (std::size_t d = 0; d < extents.size(); ++d) kept.to[d].stop = std::min(extents[d], kept.to[d].stop);
  return remap({.shape = std::move(extents), .pieces = {std::move(kept)}}, {x});
}

std::int64_t fast_length(std::int64_t n) {
  for (;; ++n) {
    auto rest = n;
    for (const std::int64_t factor : {2, 3, 5, 7})
      while (rest % factor == 0) rest /= factor;
    if (rest == 1) return n;
  }
}

}  // namespace tessera
