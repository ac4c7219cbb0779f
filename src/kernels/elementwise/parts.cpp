#include "kernels/elementwise/parts.hpp"

#include "kernels/move/copy.hpp"

namespace tessera::kernels {
namespace {

enum class Overlap { none, some, all };

Overlap overlap(const Box& part, const Box& piece) {
  Overlap result = Overlap::all;
  for (std::size_t d = 0; d < piece.size(); ++d) {
    if (part[d].stop <= piece[d].start || piece[d].stop <= part[d].start) return Overlap::none;
    if (part[d].start > piece[d].start || part[d].stop < piece[d].stop) result = Overlap::some;
  }
  return result;
}

bool is_dense(const FusedPart& part, const Box& piece) {
  std::int64_t expected = 1;
  for (std::size_t d = piece.size(); d-- > 0;) {
    const auto extent = piece[d].size();
    if (extent > 1 && part.strides[d] != expected) return false;
    expected *= extent;
  }
  return true;
}

const std::byte* address(const FusedPart& part, const Box& box, std::size_t itemsize) {
  std::int64_t element = part.offset;
  for (std::size_t d = 0; d < box.size(); ++d) element += box[d].start * part.strides[d];
  return part.data + element * static_cast<std::int64_t>(itemsize);
}

}  // namespace

const std::byte* dense_in_parts(std::span<const FusedPart> parts, const Box& piece, std::size_t itemsize) {
  for (const auto& part : parts) {
    const Overlap shared = overlap(part.box, piece);
    if (shared == Overlap::none) continue;
    return shared == Overlap::all && is_dense(part, piece) ? address(part, piece, itemsize) : nullptr;
  }
  return nullptr;
}

void pack_parts(std::span<const FusedPart> parts, const Box& piece, std::size_t itemsize, std::byte* out) {
  std::vector<std::int64_t> dense(piece.size(), 1);
  for (std::size_t d = piece.size(); d-- > 1;) dense[d - 1] = dense[d] * piece[d].size();
  for (std::size_t p = parts.size(); p-- > 0;) {
    if (overlap(parts[p].box, piece) == Overlap::none) continue;
    const Box shared = intersect(parts[p].box, piece);
    std::int64_t to = 0;
    for (std::size_t d = 0; d < piece.size(); ++d) to += (shared[d].start - piece[d].start) * dense[d];
    copy_strided(out + to * static_cast<std::int64_t>(itemsize), dense, address(parts[p], shared, itemsize),
                 parts[p].strides, box_shape(shared), itemsize);
  }
}

}  // namespace tessera::kernels
