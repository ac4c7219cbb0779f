// Divide and conquer on a tridiagonal matrix whose eigenvectors are held by rows.
//
//   4 ranks:   each solves its own diagonal block; (0 1) and (2 3) are joined, then (01 23).
//   A join sends the two rows of U at the cut and each rank's share of the roots; a rank multiplies its own
//   rows with the vectors of the joined problem, which it computes as it goes.
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

#include "comm/collectives/collectives.hpp"
#include "kernels/factor/rank_one_merge.hpp"
#include "ops/factor/two_stage/two_stage.hpp"

namespace tessera::factor {
namespace {

// A range of the matrix that is solved: the parts (ranks) that hold its rows.
struct Solved {
  int first, last;  // one past
};

template <class R> class Conquest {
 public:
  using Merge = kernels::RankOneMerge<R>;
  using Root = typename Merge::Root;
  struct AtCut {
    R value, element;
  };

  Conquest(const Grid& grid, std::vector<R>& diagonal, std::vector<R>& beside, SplitRows<R>& rows)
      : grid_(grid), d_(diagonal), e_(beside), rows_(rows), n_(static_cast<std::int64_t>(diagonal.size())) {
    for (int part = 0; part < grid.all->size() && start_of(part) < n_; ++part) parts_ = part + 1;
    const Range mine = rows_of_part(n_, grid.all->size(), grid.rank);
    rows.first = mine.start, rows.count = mine.size();
  }

  bool run() {
    solve_own();
    std::vector<Solved> level;
    for (int part = 0; part < parts_; ++part) level.push_back({part, part + 1});
    while (level.size() > 1) level = join(level);
    share_outcome();
    return converged_ != 0;
  }

 private:
  std::int64_t start_of(int part) const { return rows_of_part(n_, grid_.all->size(), part).start; }
  std::int64_t end_of(int part) const { return rows_of_part(n_, grid_.all->size(), part).stop; }
  std::int64_t start_of(Solved node) const { return start_of(node.first); }
  std::int64_t size_of(Solved node) const { return end_of(node.last - 1) - start_of(node.first); }

  void solve_own() {
    for (int part = 1; part < parts_; ++part) {  // what the joins add again
      const R corner = std::abs(e_[start_of(part) - 1]);
      d_[start_of(part) - 1] -= corner, d_[start_of(part)] -= corner;
    }
    rows_.vectors.resize(rows_.count * rows_.count);
    std::vector<R> e(std::max<std::int64_t>(rows_.count, 1));
    for (std::int64_t i = 0; i + 1 < rows_.count; ++i) e[i] = e_[rows_.first + i];
    converged_ =
        kernels::tridiagonal_eigh(rows_.count, d_.data() + rows_.first, e.data(), rows_.vectors.data());
  }

  // Everybody takes part in the messages of all joins of a level.
  std::vector<Solved> join(const std::vector<Solved>& level) {
    std::vector<Solved> joined;
    std::optional<std::size_t> mine;  // the first half of the join that this rank takes part in
    for (std::size_t i = 0; i < level.size(); i += 2) {
      const bool is_pair = i + 1 < level.size();
      joined.push_back({level[i].first, level[is_pair ? i + 1 : i].last});
      if (is_pair && grid_.rank >= joined.back().first && grid_.rank < joined.back().last) mine = i;
    }
    const std::vector<AtCut> cuts = rows_at_the_cuts(level);
    std::unique_ptr<Merge> merge;
    if (mine) {
      const Solved top = level[*mine], both{top.first, level[*mine + 1].last};
      const std::int64_t start = start_of(both), cut = start_of(level[*mine + 1]);
      std::vector<R> d, z;
      for (std::int64_t i = start; i < start + size_of(both); ++i)
        d.push_back(cuts[i].value), z.push_back(cuts[i].element);
      merge = std::make_unique<Merge>(std::move(d), std::move(z), cut - start, e_[cut - 1]);
    }
    const std::vector<Root> roots = all_roots(joined, merge.get());
    if (mine) {
      const Solved both{level[*mine].first, level[*mine + 1].last};
      merge->take({roots.begin() + start_of(both), roots.begin() + start_of(both) + merge->roots()});
      multiply(*merge, size_of(level[*mine]), grid_.rank < level[*mine].last, size_of(both));
      for (std::int64_t i = 0; i < size_of(both); ++i) d_[start_of(both) + i] = merge->order()[i].value;
    }
    return joined;
  }

  // The values and last rows of the upper halves, those and first rows of the lower ones, at their nodes'
  // places.
  std::vector<AtCut> rows_at_the_cuts(const std::vector<Solved>& level) {
    std::vector<AtCut> all(n_), own;
    std::vector<std::int64_t> bytes(grid_.all->size(), 0), offsets(grid_.all->size(), 0);
    for (std::size_t i = 0; i < level.size(); ++i) {
      const bool is_top = i % 2 == 0;
      if (is_top && i + 1 == level.size()) break;
      const int holder = is_top ? level[i].last - 1 : level[i].first;
      bytes[holder] = size_of(level[i]) * static_cast<std::int64_t>(sizeof(AtCut));
      offsets[holder] = start_of(level[i]) * static_cast<std::int64_t>(sizeof(AtCut));
      if (holder != grid_.rank) continue;
      const std::int64_t row = is_top ? rows_.count - 1 : 0;
      for (std::int64_t j = 0; j < size_of(level[i]); ++j)
        own.push_back({d_[start_of(level[i]) + j], rows_.vectors[row + j * rows_.count]});
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
          if (!merge->find_root(i, own[i - from])) converged_ = 0;
      }
    if (own.empty()) own.resize(bytes[grid_.rank] / static_cast<std::int64_t>(sizeof(Root)), Root{0, 0});
    counted::all_gather_v(*grid_.all, own.data(), bytes[grid_.rank], roots.data(), bytes, offsets);
    return roots;
  }

  // This rank's rows of the joined vectors.
  void multiply(const Merge& merge, std::int64_t top, bool is_in_top, std::int64_t size) {
    const std::int64_t rows = rows_.count;
    std::vector<R> q(rows * size, R(0)), result(rows * size);
    std::copy(rows_.vectors.begin(), rows_.vectors.end(), q.begin() + (is_in_top ? 0 : top * rows));
    for (const auto& r : merge.rotations())
      for (std::int64_t i = 0; i < rows; ++i) {
        R &p = q[r.p * rows + i], &other = q[r.q * rows + i];
        const R turned = r.c * p + r.s * other;
        other = r.c * other - r.s * p, p = turned;
      }
    const auto places = merge.filled(is_in_top);
    const auto depth = static_cast<std::int64_t>(places.size());
    std::vector<R> filled(rows * depth);
    for (std::int64_t k = 0; k < depth; ++k)
      std::copy_n(q.begin() + merge.columns()[places[k]] * rows, rows, filled.begin() + k * rows);
    kernels::PackedPanel<R> packed;
    packed.pack(rows, depth, {filled.data(), 1, rows}, grid_.order);
    constexpr std::int64_t strip = 128;
    std::vector<R> vectors(depth * strip), product(rows * strip);
    std::vector<std::int64_t> roots, to;
    const auto flush = [&] {
      const auto count = static_cast<std::int64_t>(roots.size());
      merge.vectors(places, roots.data(), count, vectors.data());
      if (depth > 0 && count > 0) packed.product(count, {vectors.data(), 1, depth}, product.data(), rows);
      if (depth == 0) std::fill(product.begin(), product.end(), R(0));
      for (std::int64_t i = 0; i < count; ++i)
        std::copy_n(product.begin() + i * rows, rows, result.begin() + to[i] * rows);
      roots.clear(), to.clear();
    };
    for (std::int64_t j = 0; j < size; ++j) {
      const auto& source = merge.order()[j];
      if (source.root < 0) {
        std::copy_n(q.begin() + source.column * rows, rows, result.begin() + j * rows);
        continue;
      }
      roots.push_back(source.root), to.push_back(j);
      if (static_cast<std::int64_t>(roots.size()) == strip) flush();
    }
    flush();
    rows_.vectors = std::move(result);
  }

  void share_outcome() {
    if (grid_.all->size() == 1) return;
    counted::broadcast(*grid_.all, d_.data(), n_ * static_cast<std::int64_t>(sizeof(R)), 0);
    counted::all_reduce(*grid_.all, ReduceKind::min, int64, &converged_, 1);
  }

  const Grid& grid_;
  std::vector<R>&d_, &e_;
  SplitRows<R>& rows_;
  const std::int64_t n_;
  int parts_ = 0;
  std::int64_t converged_ = 1;
};

}  // namespace

Range rows_of_part(std::int64_t n, int ranks, int rank) {
  constexpr std::int64_t least = 8;  // fewer rows than that are not worth a part
  const std::int64_t parts = std::clamp<std::int64_t>(n / least, 1, ranks);
  if (rank >= parts) return {n, n};
  return {n * rank / parts, n * (rank + 1) / parts};
}

template <class R> bool divide_and_conquer(const Grid& grid, std::vector<R>& diagonal, std::vector<R>& beside,
                                           SplitRows<R>& rows) {
  return Conquest<R>(grid, diagonal, beside, rows).run();
}

template bool divide_and_conquer<float>(const Grid&, std::vector<float>&, std::vector<float>&,
                                        SplitRows<float>&);
template bool divide_and_conquer<double>(const Grid&, std::vector<double>&, std::vector<double>&,
                                         SplitRows<double>&);

}  // namespace tessera::factor
