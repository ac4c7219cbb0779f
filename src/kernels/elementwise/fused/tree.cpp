// Chains that end in a tree over positions: the chain runs on blocks that fit the cache and are nodes of the
// tree, which are joined.
//
//   shape (outer, line, inner)     line:  |  64k   |  64k   |  64k   | rest |   each gives its maximal nodes
//                                          chain -> tree_nodes ...             joined by tree_root
#include <algorithm>
#include <cstring>
#include <memory>

#include "kernels/elementwise/fused/blocks.hpp"
#include "kernels/parallel.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/reduce/tree.hpp"

namespace tessera::kernels {
namespace {

using Extents = std::vector<std::int64_t>;

class FusedTreeReduce {
 public:
  FusedTreeReduce(const FusedProgram& program, const Shape& shape, std::span<const FusedOperand> inputs,
                  const FusedTree& tree, std::byte* out)
      : program_(program),
        shape_(shape),
        inputs_(inputs),
        tree_(tree),
        out_(out),
        dtype_(output_dtype(program)),
        item_(static_cast<std::int64_t>(itemsize(dtype_))),
        dim_(static_cast<std::size_t>(tree.dim)),
        dense_(dense_strides(shape)) {
    choose_block();
  }

  void run() const {
    const auto advance = [&](Extents& at) {
      return advance_block(at, shape_, block_, [&](std::size_t d) { return d == dim_; });
    };
    for_blocks(shape_, advance, [&](const Extents& at) { reduce_place(at); });
  }

 private:
  // A part of the line, by positions, and its nodes.
  struct Piece {
    std::int64_t start, size, first_row;
    std::vector<TreeNode> nodes;
  };

  // Complete lines where they fit, several of them; else 2^k positions of one line.
  void choose_block() {
    constexpr std::int64_t elements = 65536, most_columns = 1024;
    block_.assign(shape_.size(), 1);
    std::int64_t all = 1;
    const auto add_dims = [&](std::size_t first, std::size_t last, std::int64_t most) {
      for (std::size_t d = last; d-- > first;) {
        block_[d] = std::clamp<std::int64_t>(most / all, 1, shape_[d]);
        all *= block_[d];
        if (block_[d] < shape_[d]) return;
      }
    };
    add_dims(dim_ + 1, shape_.size(), most_columns);
    std::int64_t rows = least_part;
    while (2 * rows * all <= elements) rows *= 2;
    block_[dim_] = std::min(rows, shape_[dim_]);
    all *= block_[dim_];
    if (block_[dim_] == shape_[dim_]) add_dims(0, dim_, std::max(elements, all));
  }

  std::vector<Piece> pieces() const {
    const std::int64_t begin = tree_.first, end = begin + shape_[dim_], size = block_[dim_];
    const bool is_one = size == shape_[dim_];
    std::vector<Piece> pieces;
    std::int64_t rows = 0;
    for (std::int64_t start = begin, stop; start < end; start = stop) {
      stop = is_one ? end : std::min((start / size + 1) * size, end);
      auto nodes = nodes_of(start, stop - start, tree_.part.end_of_leaves);
      const auto count = static_cast<std::int64_t>(nodes.size());
      pieces.push_back({start, stop - start, rows, std::move(nodes)});
      rows += count;
    }
    return pieces;
  }

  void reduce_place(const Extents& at) const {
    const std::vector<Piece> parts = pieces();
    Extents extents(at.size());
    std::int64_t outer = 1, columns = 1, first_outer = 0, first_column = 0, inner = 1;
    for (std::size_t d = 0; d < at.size(); ++d) {
      extents[d] = std::min(block_[d], shape_[d] - at[d]);
      if (d == dim_) continue;
      auto& first = d < dim_ ? first_outer : first_column;
      (d < dim_ ? outer : columns) *= extents[d];
      first = first * shape_[d] + at[d];
      if (d > dim_) inner *= shape_[d];
    }
    const std::int64_t rows = std::max<std::int64_t>(tree_.part.rows, 1);
    std::byte* const to = out_ + (first_outer * rows * inner + first_column) * item_;
    if (columns == inner) return reduce_lines(parts, at, extents, outer, columns, to);
    std::vector<std::byte> narrow(static_cast<std::size_t>(outer * rows * columns * item_));
    reduce_lines(parts, at, extents, outer, columns, narrow.data());
    for (std::int64_t r = 0; r < outer * rows; ++r)
      std::memcpy(to + r * inner * item_, narrow.data() + r * columns * item_,
                  static_cast<std::size_t>(columns * item_));
  }

  // The result of `outer` x `columns` lines, dense.
  void reduce_lines(const std::vector<Piece>& parts, const Extents& at, const Extents& extents,
                    std::int64_t outer, std::int64_t columns, std::byte* out) const {
    const auto lines = [&](std::int64_t count) {
      return TreeLines{tree_.kind, dtype_, outer, count, columns, tree_.part.end_of_leaves};
    };
    const std::int64_t rows = tree_.part.rows;
    if (parts.size() == 1) {
      const auto values = chain_values(extents);
      run_block(program_, inputs_, dense_, at, Shape(extents), values.get());
      if (rows == 0) return tree_reduce(lines(parts[0].size), values.get(), out);
      return tree_nodes(lines(parts[0].size), tree_.first, values.get(), rows, out);
    }
    const std::int64_t row_bytes = columns * item_;
    std::vector<TreeNode> nodes;
    for (const auto& piece : parts) nodes.insert(nodes.end(), piece.nodes.begin(), piece.nodes.end());
    const std::unique_ptr<std::byte[]> made(
        new std::byte[nodes.size() * static_cast<std::size_t>(row_bytes)]);
    share(static_cast<std::int64_t>(parts.size()), 1, [&](std::int64_t begin, std::int64_t end) {
      const auto values = chain_values(extents);
      for (std::int64_t p = begin; p < end; ++p) {
        const Piece& piece = parts[static_cast<std::size_t>(p)];
        Extents from = at, size = extents;
        from[dim_] = piece.start - tree_.first, size[dim_] = piece.size;
        run_block(program_, inputs_, dense_, from, Shape(std::move(size)), values.get());
        tree_nodes(lines(piece.size), piece.start, values.get(), std::ssize(piece.nodes),
                   made.get() + piece.first_row * row_bytes);
      }
    });
    const auto joined = [&](std::size_t first, std::size_t count, std::byte* to) {
      tree_root(lines(static_cast<std::int64_t>(count)), std::span(nodes).subspan(first, count),
                made.get() + static_cast<std::int64_t>(first) * row_bytes, to);
    };
    if (rows == 0) return joined(0, nodes.size(), out);
    std::size_t next = 0;
    std::int64_t row = 0;
    for (const auto& node : nodes_of(tree_.first, shape_[dim_], tree_.part.end_of_leaves)) {
      std::int64_t covered = 0;
      const std::size_t first = next;
      while (covered < std::int64_t{1} << node.level) covered += std::int64_t{1} << nodes[next++].level;
      joined(first, next - first, out + row++ * row_bytes);
    }
    fill_identity(tree_.kind, dtype_, out + row * row_bytes, (rows - row) * columns);
  }

  std::unique_ptr<std::byte[]> chain_values(const Extents& extents) const {
    std::int64_t elements = 1;
    for (const auto extent : extents) elements *= extent;
    return std::unique_ptr<std::byte[]>(new std::byte[static_cast<std::size_t>(elements * item_)]);
  }

  const FusedProgram& program_;
  const Shape& shape_;
  std::span<const FusedOperand> inputs_;
  const FusedTree& tree_;
  std::byte* out_;
  Dtype dtype_;
  std::int64_t item_;
  std::size_t dim_;
  Extents dense_, block_;
};

}  // namespace

void run_fused_tree(const FusedProgram& program, const Shape& shape, std::span<const FusedOperand> inputs,
                    const FusedTree& tree, std::byte* out) {
  FusedTreeReduce(program, shape, inputs, tree, out).run();
}

}  // namespace tessera::kernels
