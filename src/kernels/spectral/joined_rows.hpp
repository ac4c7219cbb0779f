// Rows of the vectors of two joined problems (rank_one_merge.hpp, singular_merge.hpp), computed from the same
// rows of one half's vectors.
//
//   joined rows (rows x size) = [0 | half (rows x columns) | 0] after the merge's rotations,
//                               times the vectors of the merged problem
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "kernels/dense/panel_product.hpp"
#include "types/pooled.hpp"

namespace tessera::kernels {

// A half's columns at their place in the joined problem: null for columns of zeros.
template <class R> class HalfColumns {
 public:
  HalfColumns(std::int64_t size, std::int64_t rows, std::int64_t first, std::int64_t columns, R* half)
      : rows_(rows), at_(size, nullptr) {
    for (std::int64_t j = 0; j < columns; ++j) at_[first + j] = half + j * rows;
  }
  // Columns of zeros get memory as soon as a rotation fills them.
  template <class Rotations> void rotate(const Rotations& rotations) {
    for (const auto& r : rotations) {
      if (at_[r.p] == nullptr && at_[r.q] == nullptr) continue;
      R *const p = filled(r.p), *const q = filled(r.q);
      for (std::int64_t i = 0; i < rows_; ++i) {
        const R turned = r.c * p[i] + r.s * q[i];
        q[i] = r.c * q[i] - r.s * p[i], p[i] = turned;
      }
    }
  }
  void copy(std::int64_t column, R* to) const {
    if (at_[column] == nullptr)
      std::fill_n(to, rows_, R(0));
    else
      std::copy_n(at_[column], rows_, to);
  }
  R* filled(std::int64_t column) {
    if (at_[column] == nullptr) at_[column] = zeros_.emplace_back(rows_, R(0)).data();
    return at_[column];
  }

 private:
  std::int64_t rows_;
  std::vector<R*> at_;
  std::deque<std::vector<R>> zeros_;
};

// result: columns `ld` apart. vectors_of(places, roots, count, to) computes vectors of the merged problem in
// terms of merge.columns().
template <class R, class Merge, class Vectors>
void joined_rows(const HalfColumns<R>& half, std::int64_t rows, bool in_top, const Merge& merge,
                 Vectors&& vectors_of, R* result, std::int64_t ld) {
  const auto places = merge.filled(in_top);
  const auto depth = static_cast<std::int64_t>(places.size());
  Pooled<R> filled(rows * depth);
  for (std::int64_t k = 0; k < depth; ++k) half.copy(merge.columns()[places[k]], filled.data() + k * rows);
  PackedPanel<R> packed;
  packed.pack(rows, depth, {filled.data(), 1, rows});
  constexpr std::int64_t strip = 128;
  Pooled<R> vectors(depth * strip), product(rows * strip);
  std::vector<std::int64_t> roots, to;
  const auto flush = [&] {
    const auto count = static_cast<std::int64_t>(roots.size());
    vectors_of(places, roots.data(), count, vectors.data());
    if (depth > 0 && count > 0) packed.product(count, {vectors.data(), 1, depth}, product.data(), rows);
    if (depth == 0) std::fill(product.begin(), product.end(), R(0));
    for (std::int64_t i = 0; i < count; ++i)
      std::copy_n(product.data() + i * rows, rows, result + to[i] * ld);
    roots.clear(), to.clear();
  };
  for (std::int64_t j = 0; j < static_cast<std::int64_t>(merge.order().size()); ++j) {
    const auto& source = merge.order()[j];
    if (source.root < 0) {
      half.copy(source.column, result + j * ld);
      continue;
    }
    roots.push_back(source.root), to.push_back(j);
    if (static_cast<std::int64_t>(roots.size()) == strip) flush();
  }
  flush();
}

}  // namespace tessera::kernels
