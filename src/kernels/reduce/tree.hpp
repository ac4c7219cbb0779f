// Sums and products along one dim as a binary tree over global positions.
//
//   position   0   1   2   3   4          node (level, i) covers [i * 2^level, (i + 1) * 2^level)
//               \ /     \ /     |          it is node (level - 1, 2 i) + node (level - 1, 2 i + 1)
//              (1,0)   (1,1)  (0,4)        where the right one lies beyond the end: the left one alone
//                 \     /       |
//                  (2,0)        |
//                      \       /
//                        (3,0)
//
// Long lines whose elements are close in memory have leaves: each complete group of 64 positions is a table
// of four rows of sixteen, whose columns are added up first, so that vectors need no shuffles. Position 16 r
// + l of a leaf is position 4 l + r of the tree:
//
//   0  1 .. 15
//   16 17 .. 31      (0, 0) = x[0], (0, 1) = x[16], (0, 2) = x[32], (0, 3) = x[48], (0, 4) = x[1] ...
//   32 33 .. 47
//   48 49 .. 63
//
// An element of the result depends on the line's elements and their positions alone: not on the width of
// vectors, on threads, on the other lines, or on where a layout cuts the line. A part of a line is the list
// of its maximal nodes, at most twice log2 of its length.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include "types/reduce_kind.hpp"

namespace tessera::kernels {

// Whether a line of `extent` elements, `inner` apart in the global array, has leaves. Short lines have none,
// because a rank that holds a part of a leaf must send its elements.
bool has_leaves(std::int64_t extent, std::int64_t inner);
// The position where the last complete leaf of such a line ends.
std::int64_t end_of_leaves(std::int64_t extent);
// The least 2^k for which a part of a line that begins at a multiple of it, and is as long or reaches the
// line's end, gives a node of the line's tree.
inline constexpr std::int64_t least_part = 64;

struct TreeNode {
  std::int64_t first = 0;  // position in the tree
  int level = 0;
  friend bool operator==(const TreeNode&, const TreeNode&) = default;
};
// The maximal nodes of [first, first + count), in the order of their elements. Their number depends on both;
// at most most_nodes(count).
std::vector<TreeNode> nodes_of(std::int64_t first, std::int64_t count, std::int64_t end_of_leaves = 0);
std::int64_t most_nodes(std::int64_t count);

// Elements x[outer, extent, inner], dense. Floats and complex; sum or prod.
struct TreeLines {
  ReduceKind kind;
  Dtype dtype;
  std::int64_t outer, extent, inner;
  std::int64_t end_of_leaves = 0;
};

// The maximal nodes of lines that begin at position `first`: out[outer, rows, inner], node i in row i; rows
// after the last node get the identity. rows >= the number of nodes.
void tree_nodes(const TreeLines&, std::int64_t first, const void* x, std::int64_t rows, void* out);

// The tree's root from all of its nodes, in any order: row r of x[outer, extent, inner] holds nodes[r]; rows
// whose node has level -1 are ignored. out[outer, inner].
void tree_root(const TreeLines&, std::span<const TreeNode> nodes, const void* x, void* out);

// Both for whole lines: out[outer, inner].
void tree_reduce(const TreeLines&, const void* x, void* out);

}  // namespace tessera::kernels
