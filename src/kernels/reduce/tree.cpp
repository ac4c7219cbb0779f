// Loops of plain additions, compiled once per instruction set: no order depends on the width of a vector.
#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/tree.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <complex>
#include <memory>
#include <vector>

#include "kernels/parallel.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/reduce/tree.hpp"
#include "kernels/visit.hpp"

#ifndef TESSERA_KERNELS_TREE_SHARED
#define TESSERA_KERNELS_TREE_SHARED
namespace tessera::kernels {
namespace {

// A pass works on rows that stay in the first-level cache; wide rows go in pieces.
constexpr std::int64_t most_columns = 1024, cached_elements = 4096, line_elements = 16384;
constexpr int most_levels = 63, shared_level = 16;
constexpr int leaf_level = 6;
constexpr std::int64_t leaf = std::int64_t{1} << leaf_level, leaf_rows = 4, leaf_columns = leaf / leaf_rows;

// The place of a leaf's element in the tree, and back.
std::int64_t turned(std::int64_t position, std::int64_t rows) {
  const std::int64_t base = position & -leaf, at = position - base, columns = leaf / rows;
  return base + at % columns * rows + at / columns;
}

struct NodeTask {
  TreeLines lines;
  std::int64_t first, rows;
  std::span<const TreeNode> nodes;
  const void* x;
  void* out;
};

bool has_leaves(const TreeLines& l, const TreeNode& node) {
  return node.level >= leaf_level && node.first < l.end_of_leaves;
}
// The index of a node's first element among those of its task.
std::int64_t place_of(const NodeTask& t, const TreeNode& node) {
  const bool is_of_leaf = node.level == 0 && node.first < t.lines.end_of_leaves;
  return (is_of_leaf ? turned(node.first, leaf_columns) : node.first) - t.first;
}

}  // namespace
}  // namespace tessera::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

struct Sum {
  template <class T> static HWY_INLINE T of(T a, T b) { return a + b; }
  template <class V> static HWY_INLINE V of_vectors(V a, V b) { return hn::Add(a, b); }
};
struct Prod {
  template <class V> static HWY_INLINE V of_vectors(V a, V b) { return hn::Mul(a, b); }
  template <class T> static HWY_INLINE T of(T a, T b) { return a * b; }
  // The real part is a sum, not a difference: as in gemm_own.
  template <class R> static HWY_INLINE std::complex<R> of(std::complex<R> a, std::complex<R> b) {
    return {a.real() * b.real() + -a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
};

// Rows of `columns` elements, `stride` apart.
template <class T> struct Rows {
  const T* data;
  std::int64_t stride, columns;
  Rows from(std::int64_t row) const { return {data + row * stride, stride, columns}; }
};

// Pairs of rows: out is dense.
template <class Op, class T> void halve(const Rows<T> x, std::int64_t pairs, T* HWY_RESTRICT out) {
  if (x.columns == 1 && x.stride == 1) {
    const T* HWY_RESTRICT from = x.data;
    for (std::int64_t i = 0; i < pairs; ++i) out[i] = Op::of(from[2 * i], from[2 * i + 1]);
    return;
  }
  for (std::int64_t i = 0; i < pairs; ++i) {
    const T* HWY_RESTRICT even = x.data + 2 * i * x.stride;
    const T* HWY_RESTRICT odd = even + x.stride;
    T* HWY_RESTRICT to = out + i * x.columns;
    for (std::int64_t c = 0; c < x.columns; ++c) to[c] = Op::of(even[c], odd[c]);
  }
}

// Eight neighbours of a line at once, as three passes of halve do.
template <class Op, class T> void eighth(const T* HWY_RESTRICT x, std::int64_t eights, T* HWY_RESTRICT out) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto pairs = [&](auto low, auto high) {
    return Op::of_vectors(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low));
  };
  const auto fours = [&](const T* at) {
    return pairs(pairs(hn::LoadU(d, at), hn::LoadU(d, at + lanes)),
                 pairs(hn::LoadU(d, at + 2 * lanes), hn::LoadU(d, at + 3 * lanes)));
  };
  for (; i + lanes <= eights; i += lanes)
    hn::StoreU(pairs(fours(x + 8 * i), fours(x + 8 * i + 4 * lanes)), d, out + i);
#endif
  for (; i < eights; ++i) {
    const T* const at = x + 8 * i;
    out[i] = Op::of(Op::of(Op::of(at[0], at[1]), Op::of(at[2], at[3])),
                    Op::of(Op::of(at[4], at[5]), Op::of(at[6], at[7])));
  }
}

#if HWY_TARGET != HWY_SCALAR
// Vector v of the sums of leaves' columns, and the sums of 2, 4 and 8 neighbours in vectors from v on.
template <class Op, class T> struct LeafSums {
  static constexpr hn::ScalableTag<T> d{};
  static constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(d)),
                                vectors = std::max<std::int64_t>(leaf_columns / lanes, 1);
  using V = hn::Vec<hn::ScalableTag<T>>;

  template <std::int64_t v> static HWY_INLINE V columns(const T* HWY_RESTRICT x) {
    const T* HWY_RESTRICT const from = x + v / vectors * leaf + v % vectors * lanes;
    const V r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + leaf_columns),
            r2 = hn::LoadU(d, from + 2 * leaf_columns), r3 = hn::LoadU(d, from + 3 * leaf_columns);
    return Op::of_vectors(Op::of_vectors(r0, r1), Op::of_vectors(r2, r3));
  }
  static HWY_INLINE V pairs(V low, V high) {
    return Op::of_vectors(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low));
  }
  template <std::int64_t v> static HWY_INLINE V fours(const T* HWY_RESTRICT x) {
    const V a = columns<v>(x), b = columns<v + 1>(x), low = pairs(a, b);
    const V c = columns<v + 2>(x), e = columns<v + 3>(x), high = pairs(c, e);
    return pairs(low, high);
  }
  // In the order of addresses, which the processor reads ahead.
  static HWY_INLINE V eights(const T* HWY_RESTRICT x) {
    const V low = fours<0>(x), high = fours<4>(x);
    return pairs(low, high);
  }
};
#endif

// The leaves of a line: two sums of each, as two passes over its rows and three over neighbours give.
template <class Op, class T> void fold(const T* HWY_RESTRICT x, std::int64_t leaves, T* HWY_RESTRICT out) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  using Sums = LeafSums<Op, T>;
  if (Sums::lanes <= leaf_columns)
    for (constexpr std::int64_t at_once = 8 / Sums::vectors; i + at_once <= leaves; i += at_once)
      hn::StoreU(Sums::eights(x + i * leaf), Sums::d, out + 2 * i);
#endif
  for (; i < leaves; ++i) {
    T columns[leaf_columns];
    const T* const at = x + i * leaf;
    for (std::int64_t c = 0; c < leaf_columns; ++c)
      columns[c] = Op::of(Op::of(at[c], at[c + leaf_columns]),
                          Op::of(at[c + 2 * leaf_columns], at[c + 3 * leaf_columns]));
    for (std::int64_t count = leaf_columns / 2; count >= 2; count /= 2)
      for (std::int64_t c = 0; c < count; ++c) columns[c] = Op::of(columns[2 * c], columns[2 * c + 1]);
    out[2 * i] = columns[0], out[2 * i + 1] = columns[1];
  }
}

// Eight rows at once, as three passes of halve do.
template <class Op, class T> void eight_rows(const Rows<T> x, std::int64_t eights, T* HWY_RESTRICT out) {
  for (std::int64_t i = 0; i < eights; ++i) {
    const T* HWY_RESTRICT const at = x.data + 8 * i * x.stride;
    T* HWY_RESTRICT const to = out + i * x.columns;
    const auto row = [&](std::int64_t r) { return at + r * x.stride; };
    std::int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
    if constexpr (std::is_floating_point_v<T>) {
      const hn::ScalableTag<T> d;
      const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
      const auto pair = [&](std::int64_t r) {
        return Op::of_vectors(hn::LoadU(d, row(r) + c), hn::LoadU(d, row(r + 1) + c));
      };
      for (; c + lanes <= x.columns; c += lanes)
        hn::StoreU(Op::of_vectors(Op::of_vectors(pair(0), pair(2)), Op::of_vectors(pair(4), pair(6))), d,
                   to + c);
    }
#endif
    const auto pair = [&](std::int64_t r) { return Op::of(row(r)[c], row(r + 1)[c]); };
    for (; c < x.columns; ++c) to[c] = Op::of(Op::of(pair(0), pair(2)), Op::of(pair(4), pair(6)));
  }
}

// Four rows at once, as two passes of halve do.
template <class Op, class T> void quarter(const Rows<T> x, std::int64_t fours, T* HWY_RESTRICT out) {
  for (std::int64_t i = 0; i < fours; ++i) {
    const T *HWY_RESTRICT r0 = x.data + 4 * i * x.stride, *HWY_RESTRICT r1 = r0 + x.stride,
                          *HWY_RESTRICT r2 = r1 + x.stride, *HWY_RESTRICT r3 = r2 + x.stride;
    T* HWY_RESTRICT to = out + i * x.columns;
    for (std::int64_t c = 0; c < x.columns; ++c) to[c] = Op::of(Op::of(r0[c], r1[c]), Op::of(r2[c], r3[c]));
  }
}

template <class Op, class T> class NodeMaker {
 public:
  // Nodes of at most `rows` rows.
  NodeMaker(std::int64_t columns, std::int64_t rows)
      : cached_level_(level_in_cache(columns, rows)),
        passes_(std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(columns << cached_level_))) {}

  // The node over 2^level rows. `leaves`: level >= leaf_level, the rows lie side by side.
  void make(const Rows<T> x, int level, bool leaves, T* out) {
    if (level <= cached_level_) return in_cache(x, level, leaves, out);
    const int above = level - cached_level_;
    partial_.resize(static_cast<std::size_t>(x.columns * (above + 1)));
    const auto waiting = [&](int l) { return partial_.data() + x.columns * l; };
    T* const value = waiting(above);
    for (std::int64_t block = 0; block < std::int64_t{1} << above; ++block) {
      int merged = 0;
      for (auto carry = block; (carry & 1) != 0; carry >>= 1) ++merged;
      // Merges upwards: the left ones wait in their levels.
      T* const place = merged == above ? out : waiting(merged);
      in_cache(x.from(block << cached_level_), cached_level_, leaves, merged == 0 ? place : value);
      for (int l = 0; l < merged; ++l) merge(x.columns, waiting(l), value, l + 1 == merged ? place : value);
    }
  }

 private:
  static int level_in_cache(std::int64_t columns, std::int64_t rows) {
    const std::int64_t most = columns < leaf_columns ? line_elements : cached_elements;
    int level = 3;
    while ((columns << (level + 1)) <= most && std::int64_t{1} << level < rows) ++level;
    return level;
  }
  static void merge(std::int64_t columns, const T* left, const T* right, T* out) {
    for (std::int64_t c = 0; c < columns; ++c) out[c] = Op::of(left[c], right[c]);
  }

  void in_cache(const Rows<T> x, int level, bool leaves, T* out) {
    if (level == 0) {
      std::copy_n(x.data, x.columns, out);
      return;
    }
    Rows<T> from = x;
    T* spare = passes_.get();
    if (leaves) {
      level = fold_leaves(x, level, spare);
      from = {spare, x.columns, x.columns};
      spare += x.columns << level;
    }
    while (level > 0) {
      T* const to = is_last(from, level) ? out : spare;
      const int less = pass(from, level, to);
      spare += from.columns << less;
      from = {to, from.columns, from.columns};
      level = less;
    }
  }
  // Returns the level that is left.
  static int fold_leaves(const Rows<T> x, int level, T* out) {
    if constexpr (std::is_floating_point_v<T>)
      if (x.columns == 1) {
        fold<Op>(x.data, std::int64_t{1} << (level - leaf_level), out);
        return level - leaf_level + 1;
      }
    const std::int64_t row = leaf_columns * x.columns;
    quarter<Op>(Rows<T>{x.data, row, row}, std::int64_t{1} << (level - leaf_level), out);
    return level - 2;
  }
  static int levels_of_a_pass(const Rows<T>& x, int level) {
    const bool is_line = x.columns == 1 && x.stride == 1;
    if (is_line) return std::is_floating_point_v<T> && level >= 3 ? 3 : 1;
    return std::min(level, 3);
  }
  static bool is_last(const Rows<T>& x, int level) { return levels_of_a_pass(x, level) == level; }
  static int pass(const Rows<T>& x, int level, T* out) {
    const int levels = levels_of_a_pass(x, level);
    const std::int64_t rows = std::int64_t{1} << (level - levels);
    const bool is_line = x.columns == 1 && x.stride == 1;
    if (levels == 1)
      halve<Op>(x, rows, out);
    else if (levels == 2)
      quarter<Op>(x, rows, out);
    else if (!is_line)
      eight_rows<Op>(x, rows, out);
    else if constexpr (std::is_floating_point_v<T>)
      eighth<Op>(x.data, rows, out);
    return level - levels;
  }

  int cached_level_;
  std::unique_ptr<T[]> passes_;
  std::vector<T> partial_;
};

// A node of very many rows, of which threads make parts.
template <class Op, class T> void make_together(const Rows<T> x, int level, bool leaves, T* out) {
  std::vector<T> parts(static_cast<std::size_t>(x.columns) << (level - shared_level));
  share(std::int64_t{1} << (level - shared_level), 1, [&](std::int64_t begin, std::int64_t end) {
    NodeMaker<Op, T> maker(x.columns, std::int64_t{1} << shared_level);
    for (std::int64_t i = begin; i < end; ++i)
      maker.make(x.from(i << shared_level), shared_level, leaves, parts.data() + i * x.columns);
  });
  NodeMaker<Op, T>(x.columns, std::int64_t{1} << (level - shared_level))
      .make({parts.data(), x.columns, x.columns}, level - shared_level, false, out);
}

// Calls work(outer, first column, columns), shared among threads where there are enough of them.
template <class Work> void for_pieces(const TreeLines& l, std::int64_t item, Work&& work) {
  const std::int64_t pieces = (l.inner + most_columns - 1) / most_columns;
  share(l.outer * pieces, worth_a_thread(l.extent * std::min(l.inner, most_columns) * item),
        [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t column = i % pieces * most_columns;
            work(i / pieces, column, std::min(most_columns, l.inner - column));
          }
        });
}

template <class Op, class T> void make_nodes(const NodeTask& t) {
  const auto& l = t.lines;
  const T* x = static_cast<const T*>(t.x);
  T* out = static_cast<T*>(t.out);
  const auto item = static_cast<std::int64_t>(sizeof(T));
  const bool is_one_piece =
      threads() > 1 && l.outer * ((l.inner + most_columns - 1) / most_columns) < threads();
  for_pieces(l, item, [&](std::int64_t o, std::int64_t column, std::int64_t columns) {
    NodeMaker<Op, T> maker(columns, l.extent);
    for (std::size_t i = 0; i < t.nodes.size(); ++i) {
      const auto& node = t.nodes[i];
      if (is_one_piece && node.level > shared_level) continue;
      maker.make({x + (o * l.extent + place_of(t, node)) * l.inner + column, l.inner, columns}, node.level,
                 has_leaves(l, node), out + (o * t.rows + static_cast<std::int64_t>(i)) * l.inner + column);
    }
  });
  if (!is_one_piece) return;
  for (std::int64_t o = 0; o < l.outer; ++o)
    for (std::int64_t column = 0; column < l.inner; column += most_columns)
      for (std::size_t i = 0; i < t.nodes.size(); ++i)
        if (const auto& node = t.nodes[i]; node.level > shared_level)
          make_together<Op>(Rows<T>{x + (o * l.extent + place_of(t, node)) * l.inner + column, l.inner,
                                    std::min(most_columns, l.inner - column)},
                            node.level, has_leaves(l, node),
                            out + (o * t.rows + static_cast<std::int64_t>(i)) * l.inner + column);
}

// Nodes in order: two that are the halves of one become it; at the end the last joins the one before it.
template <class Op, class T> class Joiner {
 public:
  explicit Joiner(std::int64_t columns) : columns_(columns) {}
  T* push(TreeNode node) {
    waiting_.push_back(node);
    values_.resize(waiting_.size() * static_cast<std::size_t>(columns_));
    return top();
  }
  void join_halves() {
    while (waiting_.size() > 1 && are_halves(waiting_[waiting_.size() - 2], waiting_.back())) {
      add_last();
      ++waiting_.back().level;
    }
  }
  const T* root() {
    while (waiting_.size() > 1) add_last();
    return values_.data();
  }
  void clear() { waiting_.clear(); }

 private:
  static bool are_halves(const TreeNode& a, const TreeNode& b) {
    return a.level == b.level && (a.first >> a.level & 1) == 0 &&
           a.first + (std::int64_t{1} << a.level) == b.first;
  }
  T* top() { return values_.data() + static_cast<std::int64_t>(waiting_.size() - 1) * columns_; }
  void add_last() {
    T *right = top(), *left = right - columns_;
    for (std::int64_t c = 0; c < columns_; ++c) left[c] = Op::of(left[c], right[c]);
    waiting_.pop_back();
  }

  std::int64_t columns_;
  std::vector<TreeNode> waiting_;
  std::vector<T> values_;
};

template <class Op, class T> void join_nodes(const NodeTask& t) {
  const auto& l = t.lines;
  const T* x = static_cast<const T*>(t.x);
  T* out = static_cast<T*>(t.out);
  std::vector<std::size_t> in_order;
  for (std::size_t r = 0; r < t.nodes.size(); ++r)
    if (t.nodes[r].level >= 0) in_order.push_back(r);
  std::sort(in_order.begin(), in_order.end(),
            [&](std::size_t a, std::size_t b) { return t.nodes[a].first < t.nodes[b].first; });
  for_pieces(l, static_cast<std::int64_t>(sizeof(T)),
             [&](std::int64_t o, std::int64_t column, std::int64_t columns) {
               Joiner<Op, T> joiner(columns);
               for (const std::size_t r : in_order) {
                 const T* row = x + (o * l.extent + static_cast<std::int64_t>(r)) * l.inner + column;
                 std::copy_n(row, columns, joiner.push(t.nodes[r]));
                 joiner.join_halves();
               }
               std::copy_n(joiner.root(), columns, out + o * l.inner + column);
             });
}

// Whole lines: the nodes of each are joined while they are in the cache.
template <class Op, class T> void reduce_lines(const NodeTask& t) {
  const auto& l = t.lines;
  const T* x = static_cast<const T*>(t.x);
  T* out = static_cast<T*>(t.out);
  const std::int64_t pieces = (l.inner + most_columns - 1) / most_columns;
  share(l.outer * pieces,
        worth_a_thread(l.extent * std::min(l.inner, most_columns) * static_cast<std::int64_t>(sizeof(T))),
        [&](std::int64_t begin, std::int64_t end) {
          const std::int64_t widest = std::min(l.inner, most_columns);
          NodeMaker<Op, T> maker(widest, l.extent);
          Joiner<Op, T> joiner(widest), narrow(l.inner % most_columns);
          for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t o = i / pieces, column = i % pieces * most_columns,
                               columns = std::min(most_columns, l.inner - column);
            auto& join = columns == widest ? joiner : narrow;
            join.clear();
            for (const auto& node : t.nodes)
              maker.make({x + (o * l.extent + node.first) * l.inner + column, l.inner, columns}, node.level,
                         has_leaves(l, node), join.push(node));
            std::copy_n(join.root(), columns, out + o * l.inner + column);
          }
        });
}

template <class Work> void visit_lines(NodeTask t, Work&& work) {
  if (t.lines.kind == ReduceKind::prod) {
    if (t.lines.dtype == float32) return work(Prod{}, float{}, t);
    if (t.lines.dtype == float64) return work(Prod{}, double{}, t);
    if (t.lines.dtype == complex64) return work(Prod{}, std::complex<float>{}, t);
    return work(Prod{}, std::complex<double>{}, t);
  }
  if (is_complex(t.lines.dtype)) {  // by parts
    t.lines.inner *= 2;
    t.lines.dtype = t.lines.dtype == complex64 ? float32 : float64;
  }
  if (t.lines.dtype == float32) return work(Sum{}, float{}, t);
  return work(Sum{}, double{}, t);
}

void MakeNodes(const NodeTask& task) {
  visit_lines(task, []<class Op, class T>(Op, T, const NodeTask& t) { make_nodes<Op, T>(t); });
}
void JoinNodes(const NodeTask& task) {
  visit_lines(task, []<class Op, class T>(Op, T, const NodeTask& t) { join_nodes<Op, T>(t); });
}
void ReduceLines(const NodeTask& task) {
  visit_lines(task, []<class Op, class T>(Op, T, const NodeTask& t) { reduce_lines<Op, T>(t); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(MakeNodes);
HWY_EXPORT(JoinNodes);
HWY_EXPORT(ReduceLines);

std::int64_t end_of_leaves(std::int64_t extent, std::int64_t inner) {
  constexpr std::int64_t shortest = 4096;
  return extent >= shortest && inner < leaf_columns ? extent & -leaf : 0;
}

std::vector<TreeNode> nodes_of(std::int64_t first, std::int64_t count, std::int64_t leaves) {
  std::vector<TreeNode> nodes;
  const std::int64_t last = first + count;
  while (first < last) {
    const std::int64_t end = first < leaves ? std::min(last, leaves) : last;
    const bool is_cut = first < leaves && (first % leaf != 0 || first + leaf > end);
    int level = first < leaves ? leaf_level : 0;
    while (level + 1 < most_levels && (first >> level & 1) == 0 && first + (std::int64_t{2} << level) <= end)
      ++level;
    if (is_cut) level = 0;
    nodes.push_back({is_cut ? turned(first, leaf_rows) : first, level});
    first += std::int64_t{1} << level;
  }
  return nodes;
}

std::int64_t most_nodes(std::int64_t count) {
  std::int64_t nodes = 2 * leaf;
  for (std::int64_t n = count; n > 0; n >>= 1) nodes += 2;
  return std::min(nodes, count);
}

void tree_nodes(const TreeLines& lines, std::int64_t first, const void* x, std::int64_t rows, void* out) {
  const auto item = static_cast<std::int64_t>(itemsize(lines.dtype));
  const auto nodes = nodes_of(first, lines.extent, lines.end_of_leaves);
  const std::int64_t empty = rows - static_cast<std::int64_t>(nodes.size());
  for (std::int64_t o = 0; o < lines.outer; ++o)
    fill_identity(lines.kind, lines.dtype,
                  static_cast<std::byte*>(out) + ((o + 1) * rows - empty) * lines.inner * item,
                  empty * lines.inner);
  HWY_DYNAMIC_DISPATCH(MakeNodes)({lines, first, rows, nodes, x, out});
}

void tree_root(const TreeLines& lines, std::span<const TreeNode> nodes, const void* x, void* out) {
  const bool is_empty =
      std::all_of(nodes.begin(), nodes.end(), [](const TreeNode& n) { return n.level < 0; });
  if (is_empty) return fill_identity(lines.kind, lines.dtype, out, lines.outer * lines.inner);
  HWY_DYNAMIC_DISPATCH(JoinNodes)({lines, 0, 0, nodes, x, out});
}

void tree_reduce(const TreeLines& lines, const void* x, void* out) {
  if (lines.extent == 0) return fill_identity(lines.kind, lines.dtype, out, lines.outer * lines.inner);
  const auto nodes = nodes_of(0, lines.extent, lines.end_of_leaves);
  const bool is_long = lines.outer * lines.inner < threads() && lines.extent > std::int64_t{2}
                                                                                   << shared_level;
  if (!is_long) return HWY_DYNAMIC_DISPATCH(ReduceLines)({lines, 0, 0, nodes, x, out});
  const auto rows = static_cast<std::int64_t>(nodes.size());
  std::vector<std::byte> made(static_cast<std::size_t>(lines.outer * rows * lines.inner) *
                              itemsize(lines.dtype));
  tree_nodes(lines, 0, x, rows, made.data());
  tree_root({lines.kind, lines.dtype, lines.outer, rows, lines.inner}, nodes, made.data(), out);
}

}  // namespace tessera::kernels
#endif
