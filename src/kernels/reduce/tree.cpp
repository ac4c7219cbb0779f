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
#include "kernels/reduce/tree_passes-inl.hpp"
#include "kernels/visit.hpp"

#ifndef TESSERA_KERNELS_TREE_SHARED
#define TESSERA_KERNELS_TREE_SHARED
namespace tessera::kernels {
namespace {

// Wide rows are processed in pieces of this many columns.
constexpr std::int64_t most_columns = 1024;
constexpr int most_levels = 63, shared_level = 16;

// Converts an element's position in a leaf to its position in the tree, and back.
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

// Computes a node of very many rows; each thread computes a part of it.
template <class Op, class T> void make_together(const TreeRows<T> x, int level, bool leaves, T* out) {
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
          make_together<Op>(TreeRows<T>{x + (o * l.extent + place_of(t, node)) * l.inner + column, l.inner,
                                        std::min(most_columns, l.inner - column)},
                            node.level, has_leaves(l, node),
                            out + (o * t.rows + static_cast<std::int64_t>(i)) * l.inner + column);
}

// Receives nodes in order and joins two that are the halves of a larger node. At the end the last node is
// joined with the one before it, until one is left.
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
    if (t.lines.dtype == float32) return work(TreeProd{}, float{}, t);
    if (t.lines.dtype == float64) return work(TreeProd{}, double{}, t);
    if (t.lines.dtype == complex64) return work(TreeProd{}, std::complex<float>{}, t);
    return work(TreeProd{}, std::complex<double>{}, t);
  }
  if (is_complex(t.lines.dtype)) {  // by parts
    t.lines.inner *= 2;
    t.lines.dtype = t.lines.dtype == complex64 ? float32 : float64;
  }
  if (t.lines.dtype == float32) return work(TreeSum{}, float{}, t);
  return work(TreeSum{}, double{}, t);
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

bool has_leaves(std::int64_t extent, std::int64_t inner) {
  constexpr std::int64_t shortest = 4096;
  return extent >= shortest && inner < leaf_columns;
}
std::int64_t end_of_leaves(std::int64_t extent) {
  static_assert(least_part == leaf);
  return extent & -leaf;
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
