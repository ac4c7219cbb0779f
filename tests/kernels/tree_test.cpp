// Sums as trees over positions: compared with the tree's recursion, at once and from parts.
#include "kernels/reduce/tree.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "kernels/dense/blas_target.hpp"
#include "kernels/dense/gemm.hpp"

namespace tessera::kernels {
namespace {

std::vector<float> numbers(std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> x(static_cast<std::size_t>(n));
  for (auto& v : x)
    v = std::ldexp(static_cast<float>(random() % 2000000) - 1e6f, -20 - static_cast<int>(random() % 10));
  return x;
}

// A line; positions below `leaves` are stored as leaves.
struct Line {
  const float* x;
  std::int64_t n, step, leaves;
  float at(std::int64_t place) const {  // position 4 l + r of the tree is at 16 r + l
    const std::int64_t base = place / 64 * 64, l = place % 64 / 4, r = place % 4;
    return x[(place < leaves ? base + 16 * r + l : place) * step];
  }
};

// The node of `level` whose first position is `first`, as the header defines it.
float node(const Line& line, std::int64_t first, int level) {
  if (level == 0) return line.at(first);
  const std::int64_t middle = first + (std::int64_t{1} << (level - 1));
  const float left = node(line, first, level - 1);
  return middle < line.n ? left + node(line, middle, level - 1) : left;
}

std::vector<float> expected(const std::vector<float>& x, const TreeLines& l) {
  std::vector<float> sums;
  int level = 0;
  while ((std::int64_t{1} << level) < l.extent) ++level;
  for (std::int64_t o = 0; o < l.outer; ++o)
    for (std::int64_t c = 0; c < l.inner; ++c)
      sums.push_back(
          node({x.data() + o * l.extent * l.inner + c, l.extent, l.inner, l.end_of_leaves}, 0, level));
  return sums;
}

TEST(Tree, is_the_recursion_over_positions) {
  for (const std::int64_t extent : {1, 2, 3, 7, 8, 31, 100, 1000, 4097, 70000, 200001})
    for (const std::int64_t inner : {1, 2, 3, 5, 16, 257, 300}) {
      TreeLines lines{ReduceKind::sum, float32, extent < 1000 ? 3 : 1, extent, inner};
      if (extent * inner > 2000000) continue;
      const auto x = numbers(lines.outer * extent * inner, 1);
      std::vector<float> sums(static_cast<std::size_t>(lines.outer * inner));
      for (const std::int64_t leaves : {std::int64_t{0}, inner < 16 ? extent / 64 * 64 : 0}) {
        lines.end_of_leaves = leaves;
        tree_reduce(lines, x.data(), sums.data());
        EXPECT_EQ(sums, expected(x, lines)) << extent << " x " << inner << ", leaves before " << leaves;
      }
    }
}

TEST(Tree, is_the_same_from_any_parts) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    const std::int64_t extent = 1 + static_cast<std::int64_t>(random() % 3000), inner = 1 + random() % 7;
    const std::int64_t leaves = round % 2 == 0 ? 0 : extent / 64 * 64;
    const TreeLines whole{ReduceKind::sum, float32, 1, extent, inner, leaves};
    const auto x = numbers(extent * inner, static_cast<unsigned>(round));
    std::vector<TreeNode> rows;
    std::vector<float> values;
    for (std::int64_t first = 0; first < extent;) {
      const auto count = std::min(extent - first, static_cast<std::int64_t>(random() % 900));
      const std::int64_t most = std::max<std::int64_t>(most_nodes(count), 1) + 2;
      std::vector<float> part(static_cast<std::size_t>(most * inner));
      tree_nodes({ReduceKind::sum, float32, 1, count, inner, leaves}, first, x.data() + first * inner, most,
                 part.data());
      auto nodes = nodes_of(first, count, leaves);
      ASSERT_LE(static_cast<std::int64_t>(nodes.size()), most_nodes(count));
      nodes.resize(static_cast<std::size_t>(most), {0, -1});
      rows.insert(rows.end(), nodes.begin(), nodes.end());
      values.insert(values.end(), part.begin(), part.end());
      first += count;
    }
    std::vector<float> sums(static_cast<std::size_t>(inner));
    tree_root({ReduceKind::sum, float32, 1, static_cast<std::int64_t>(rows.size()), inner}, rows,
              values.data(), sums.data());
    EXPECT_EQ(sums, expected(x, whole)) << extent;
  }
}

TEST(Tree, of_nothing_is_the_identity) {
  double value = 5;
  tree_reduce({ReduceKind::sum, float64, 1, 0, 1}, nullptr, &value);
  EXPECT_EQ(value, 0);
  tree_reduce({ReduceKind::prod, float64, 1, 0, 1}, nullptr, &value);
  EXPECT_EQ(value, 1);
}

// Every block of a product, however it is stored, has the bits of the undivided product.
template <class T> void expect_blocks_alike(Dtype dtype) {
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    const std::int64_t m = 1 + random() % 120, n = 1 + random() % 120, k = 1 + random() % 900;
    const auto draw = [&](std::int64_t count) {
      std::vector<T> x(static_cast<std::size_t>(count));
      for (auto& v : x) v = static_cast<T>(std::ldexp(static_cast<double>(random()) - 2147483648.0, -31));
      return x;
    };
    const auto a = draw(m * k), b = draw(k * n);
    std::vector<T> whole(static_cast<std::size_t>(m * n)), part(whole.size());
    ordered_product({dtype, m, n, k, {a.data(), k, 1}, {b.data(), n, 1}, false, whole.data(), n});
    const std::int64_t i = static_cast<std::int64_t>(random()) % m,
                       j = static_cast<std::int64_t>(random()) % n;
    const std::int64_t rows = 1 + static_cast<std::int64_t>(random()) % (m - i),
                       columns = 1 + static_cast<std::int64_t>(random()) % (n - j);
    std::vector<T> at(static_cast<std::size_t>(k * m));  // a transposed
    for (std::int64_t r = 0; r < m; ++r)
      for (std::int64_t l = 0; l < k; ++l)
        at[static_cast<std::size_t>(l * m + r)] = a[static_cast<std::size_t>(r * k + l)];
    ordered_product(
        {dtype, rows, columns, k, {at.data() + i, 1, m}, {b.data() + j, n, 1}, false, part.data(), columns});
    for (std::int64_t r = 0; r < rows; ++r)
      ASSERT_EQ(std::memcmp(&part[static_cast<std::size_t>(r * columns)],
                            &whole[static_cast<std::size_t>((i + r) * n + j)],
                            static_cast<std::size_t>(columns) * sizeof(T)),
                0)
          << m << "x" << k << "x" << n << " block " << i << "," << j << " " << rows << "x" << columns;
  }
}
TEST(OrderedProduct, has_the_same_bits_in_any_block) {
  expect_blocks_alike<float>(float32);
  expect_blocks_alike<double>(float64);
}

// The expected sum is computed step by step: fused multiply-adds in order, over parts of one depth.
TEST(OrderedProduct, is_the_same_on_every_processor_with_fused_multiply_adds) {
  if (own_kernels().vectors == Vectors::baseline) GTEST_SKIP() << "the baseline has none";
  const std::int64_t k = 1000, depth = 336;  // 1000 in three even parts, rounded up to 16
  const auto a = numbers(7 * k, 1), b = numbers(k * 90, 2);
  std::vector<float> c(7 * 90);
  ordered_product({float32, 7, 90, k, {a.data(), k, 1}, {b.data(), 90, 1}, false, c.data(), 90});
  for (std::int64_t i = 0; i < 7; ++i)
    for (std::int64_t j = 0; j < 90; ++j) {
      float total = 0;
      for (std::int64_t l = 0; l < k; l += depth) {
        float part = 0;
        for (std::int64_t d = l; d < std::min(l + depth, k); ++d)
          part =
              std::fma(a[static_cast<std::size_t>(i * k + d)], b[static_cast<std::size_t>(d * 90 + j)], part);
        total = l == 0 ? part : total + part;
      }
      ASSERT_EQ(c[static_cast<std::size_t>(i * 90 + j)], total) << i << "," << j;
    }
}

}  // namespace
}  // namespace tessera::kernels
