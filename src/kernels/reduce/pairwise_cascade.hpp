// Combines any number of rows pairwise, keeping only log2 of them: the error of a sum then grows with the
// logarithm of their number.
//
//   rows in:       0    1     2        3         4
//   kept after:   [0]  [01]  [01][2]  [0123]    [0123][4]      (like carries of a binary counter)
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/elementwise/elementwise.hpp"
#include "types/reduce_kind.hpp"

namespace tessera::kernels {

// The map that merges two partial results of a reduction.
MapFn combine_map(ReduceKind, Dtype);

class PairwiseCascade {
 public:
  PairwiseCascade(MapFn merge, std::int64_t width, std::size_t itemsize)
      : merge_(merge), width_(width), bytes_(static_cast<std::size_t>(width) * itemsize) {}

  // Adds a few rows, row_bytes apart, that are merged one after the other and count as one.
  void add_rows(const std::byte* x, std::int64_t rows, std::size_t row_bytes);
  void add_row(const std::byte* x) { add_rows(x, 1, 0); }
  // Writes the complete result, after at least one row.
  void finish(std::byte* out) { finish(out, false); }
  // The same if `out` holds the result of the last few rows, which become the last leaf of the tree.
  void finish_with_rest(std::byte* out) { finish(out, true); }

 private:
  void finish(std::byte* out, bool has_rest);
  std::byte* level(int at);
  void into(const void* a, const void* b, void* out) const {
    const void* in[] = {a, b};
    merge_(in, out, width_);
  }

  MapFn merge_;
  std::int64_t width_;
  std::size_t bytes_;
  std::vector<std::unique_ptr<std::byte[]>>
      levels_;  // 0: being merged; i + 1: 2^i groups of rows, if bit i of count_ is set
  std::uint64_t count_ = 0;
};

}  // namespace tessera::kernels
