// The tree of divide and conquer on a matrix whose vectors are held by rows: for eigenvalues
// (grid_conquer.cpp) and for singular values (grid_singular_conquer.cpp).
//
//   4 ranks:   each solves its own diagonal block; (0 1) and (2 3) are joined, then (01 23).
//   A join sends the two rows of vectors at the cut and each rank's share of the roots; a rank multiplies its
//   own rows with the vectors of the joined problem, which it computes as it goes.
#pragma once
#include <algorithm>
#include <memory>
#include <optional>

#include "comm/collectives/collectives.hpp"
#include "kernels/spectral/joined_rows.hpp"
#include "ops/factor/two_stage/two_stage.hpp"

namespace tessera::factor {

// Two neighbouring ranges that become one, and where this rank's rows are in it.
struct Join {
  Range both;
  std::int64_t cut = 0;  // the first row of the lower half
  bool is_in_top = false, reaches_end = false;
  std::int64_t top() const { return cut - both.start; }
};

// A Problem holds `values` (of every row's range, on every rank that takes part in it) and its rows of the
// vectors, and defines Merge. It supplies what differs between the two decompositions: solve(own,
// reaches_end), at_cut(row, column), merge(join, values, elements), find_root(merge, index, root),
// multiply(merge, join).
template <class Problem> class Conquest {
 public:
  using R = typename Problem::Real;
  using Merge = typename Problem::Merge;
  using Root = typename Merge::Root;

  Conquest(const Grid& grid, Problem& problem)
      : grid_(grid), problem_(problem), n_(static_cast<std::int64_t>(problem.values.size())) {
    for (int part = 0; part < grid.all->size() && start_of(part) < n_; ++part) parts_ = part + 1;
  }
  std::vector<std::int64_t> cuts() const {
    std::vector<std::int64_t> rows;
    for (int part = 1; part < parts_; ++part) rows.push_back(start_of(part));
    return rows;
  }

  // False: no convergence.
  bool run() {
    const Range own = rows_of_part(n_, grid_.all->size(), grid_.rank);
    converged_ = own.size() == 0 || problem_.solve(own, own.stop == n_);
    std::vector<Solved> level;
    for (int part = 0; part < parts_; ++part) level.push_back({part, part + 1});
    while (level.size() > 1) level = join(level);
    share_outcome();
    return converged_ != 0;
  }

 private:
  // A solved range of the matrix: the parts (ranks) that hold its rows.
  struct Solved {
    int first, last;  // one past
  };
  struct AtCut {
    R value, element;
  };
  std::int64_t start_of(int part) const { return rows_of_part(n_, grid_.all->size(), part).start; }
  std::int64_t end_of(int part) const { return rows_of_part(n_, grid_.all->size(), part).stop; }
  std::int64_t start_of(Solved node) const { return start_of(node.first); }
  std::int64_t size_of(Solved node) const { return end_of(node.last - 1) - start_of(node.first); }

  // All ranks take part in the messages of all joins of a level.
  std::vector<Solved> join(const std::vector<Solved>& level) {
    std::vector<Solved> joined;
    std::optional<Join> mine;
    for (std::size_t i = 0; i < level.size(); i += 2) {
      const bool is_pair = i + 1 < level.size();
      joined.push_back({level[i].first, level[is_pair ? i + 1 : i].last});
      const Solved both = joined.back();
      if (is_pair && grid_.rank >= both.first && grid_.rank < both.last)
        mine = Join{{start_of(both), start_of(both) + size_of(both)},
                    start_of(level[i + 1]),
                    grid_.rank < level[i].last,
                    both.last == parts_};
    }
    const std::vector<AtCut> cuts = rows_at_the_cuts(level);
    std::unique_ptr<Merge> merge;
    if (mine) {
      std::vector<R> values, elements;
      for (std::int64_t i = mine->both.start; i < mine->both.stop; ++i)
        values.push_back(cuts[i].value), elements.push_back(cuts[i].element);
      merge = problem_.merge(*mine, std::move(values), std::move(elements));
    }
    const std::vector<Root> roots = all_roots(joined, merge.get());
    if (mine) {
      const auto first = roots.begin() + mine->both.start;
      merge->take({first, first + merge->roots()});
      problem_.multiply(*merge, *mine);
      for (std::int64_t i = 0; i < mine->both.size(); ++i)
        problem_.values[mine->both.start + i] = merge->order()[i].value;
    }
    return joined;
  }

  // Gathers the rows of the vectors at the cuts, with the values: the last row of each upper half, the first
  // row of each lower half. The result is indexed by the position in the matrix.
  std::vector<AtCut> rows_at_the_cuts(const std::vector<Solved>& level) {
    std::vector<AtCut> all(n_), own;
    std::vector<std::int64_t> bytes(grid_.all->size(), 0), offsets(grid_.all->size(), 0);
    for (std::size_t i = 0; i < level.size(); ++i) {
      const bool is_top = i % 2 == 0;
      if (is_top && i + 1 == level.size()) break;
      const int holder = is_top ? level[i].last - 1 : level[i].first;
      const std::int64_t start = start_of(level[i]);
      bytes[holder] = size_of(level[i]) * static_cast<std::int64_t>(sizeof(AtCut));
      offsets[holder] = start * static_cast<std::int64_t>(sizeof(AtCut));
      if (holder != grid_.rank) continue;
      const std::int64_t row = is_top ? end_of(holder) - start_of(holder) - 1 : 0;
      for (std::int64_t j = 0; j < size_of(level[i]); ++j)
        own.push_back({problem_.values[start + j], problem_.at_cut(row, j)});
    }
    counted::all_gather_v(*grid_.all, own.data(), bytes[grid_.rank], all.data(), bytes, offsets);
    return all;
  }

  // Each rank of a node finds a share of its roots.
  std::vector<Root> all_roots(const std::vector<Solved>& joined, const Merge* merge) {
    std::vector<Root> roots(n_), own;
    std::vector<std::int64_t> bytes(grid_.all->size(), 0), offsets(grid_.all->size(), 0);
    for (const Solved node : joined)
      for (int part = node.first; part < node.last; ++part) {
        const std::int64_t size = size_of(node), parts = node.last - node.first;
        const std::int64_t from = size * (part - node.first) / parts,
                           to = size * (part - node.first + 1) / parts;
        bytes[part] = (to - from) * static_cast<std::int64_t>(sizeof(Root));
        offsets[part] = (start_of(node) + from) * static_cast<std::int64_t>(sizeof(Root));
        if (part != grid_.rank || merge == nullptr) continue;
        own.resize(to - from, Root{0, 0});
        for (std::int64_t i = from; i < std::min(to, merge->roots()); ++i)
          if (!problem_.find_root(*merge, i, own[i - from])) converged_ = 0;
      }
    if (own.empty()) own.resize(bytes[grid_.rank] / static_cast<std::int64_t>(sizeof(Root)), Root{0, 0});
    counted::all_gather_v(*grid_.all, own.data(), bytes[grid_.rank], roots.data(), bytes, offsets);
    return roots;
  }

  void share_outcome() {
    if (grid_.all->size() == 1) return;
    counted::broadcast(*grid_.all, problem_.values.data(), n_ * static_cast<std::int64_t>(sizeof(R)), 0);
    counted::all_reduce(*grid_.all, ReduceKind::min, int64, &converged_, 1);
  }

  const Grid& grid_;
  Problem& problem_;
  const std::int64_t n_;
  int parts_ = 0;
  std::int64_t converged_ = 1;
};

// A rank's rows of its half's vectors at their place in a join.
template <class R> kernels::HalfColumns<R> columns_in(const Join& join, SplitRows<R>& rows) {
  const std::int64_t columns = join.is_in_top ? join.top() : join.both.size() - join.top();
  return {join.both.size(), rows.count, join.is_in_top ? 0 : join.top(), columns, rows.vectors.data()};
}
// Replaces them by this rank's rows of the joined vectors.
template <class R, class Merge, class Vectors> void multiply_rows(const Join& join, const Merge& merge,
                                                                  const kernels::HalfColumns<R>& half,
                                                                  Vectors&& vectors_of, SplitRows<R>& rows) {
  Pooled<R> joined(rows.count * join.both.size());
  kernels::joined_rows(half, rows.count, join.is_in_top, merge, vectors_of, joined.data(), rows.count);
  rows.vectors = std::move(joined);
}

}  // namespace tessera::factor
