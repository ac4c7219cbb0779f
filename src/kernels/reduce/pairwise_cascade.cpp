#include "kernels/reduce/pairwise_cascade.hpp"

#include <cstring>
#include <utility>

namespace tessera::kernels {

void PairwiseCascade::add_rows(const std::byte* x, std::int64_t rows, std::size_t row_bytes) {
  std::byte* merged = level(0);
  std::memcpy(merged, x, bytes_);
  for (std::int64_t r = 1; r < rows; ++r) into(merged, x + static_cast<std::size_t>(r) * row_bytes, merged);
  int at = 0;
  for (std::uint64_t carry = count_++; carry & 1; carry >>= 1, ++at) into(level(at + 1), merged, merged);
  level(at + 1);
  std::swap(levels_[0], levels_[at + 1]);
}

void PairwiseCascade::finish(std::byte* out, bool has_rest) {
  bool first = !has_rest;
  for (int at = 0; (count_ >> at) != 0; ++at) {
    if (((count_ >> at) & 1) == 0) continue;
    if (first)
      std::memcpy(out, level(at + 1), bytes_);
    else
      into(level(at + 1), out, out);
    first = false;
  }
}

std::byte* PairwiseCascade::level(int at) {
  while (static_cast<std::size_t>(at) >= levels_.size()) levels_.emplace_back(new std::byte[bytes_]);
  return levels_[at].get();
}

}  // namespace tessera::kernels
