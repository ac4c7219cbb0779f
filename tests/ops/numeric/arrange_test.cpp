#include <tessera/grad.hpp>

#include <algorithm>

#include "ops/numeric/operands.hpp"

namespace tessera::test {
namespace {

TEST(Arrange, shapes_and_turns) {
  EXPECT_EQ(atleast_2d(3.0).shape(), (Shape{1, 1}));
  EXPECT_EQ(atleast_1d(3.0).shape(), Shape{1});
  EXPECT_EQ(matrix_transpose(ones({2, 3, 4})).shape(), (Shape{2, 4, 3}));
  EXPECT_EQ(permute_dims(ones({2, 3, 4}), {2, 0, 1}).shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(unstack(ones({2, 3, 4}), 1).size(), 3u);
  EXPECT_EQ(broadcast_arrays({ones({3, 1}), ones({4})})[1].shape(), (Shape{3, 4}));
  EXPECT_THROW(fliplr(ones({3})), ShapeError);
  EXPECT_THROW(rot90(ones({3, 3}), 1, {0, -2}), IndexError);
}

TEST(Arrange, diagonals_and_triangles) {
  EXPECT_EQ(diag(zeros({0})).shape(), (Shape{0, 0}));
  EXPECT_THROW(diag(ones({2, 2, 2})), ShapeError);
}

TEST(Arrange, choosing) {
  EXPECT_THROW(select({ones({2}, bool_)}, {}), ArgumentError);
  EXPECT_THROW(choose(ones({2}), {ones({2})}), DtypeError);
}

TEST(Arrange, orders) {
  const Operands o = operands();
  const auto row = to_vector<double>(partition(o.u(0), 2));
  EXPECT_LE(row[0], row[2]);
  EXPECT_LE(row[2], row[4]);
  EXPECT_EQ(to_vector<double>(take_along_axis(o.u(0), argpartition(o.u(0), 2), 0)), row);
  EXPECT_THROW(partition(ones({3}), 3), IndexError);
}

// The positions of `values` before, equal to and after the element that a sort puts at kth, each in order.
std::vector<double> positions_by_sides(const std::vector<double>& values, std::int64_t kth) {
  const auto is_less = [](double a, double b) { return a < b || (b != b && a == a); };
  std::vector<double> sorted = values, result;
  std::sort(sorted.begin(), sorted.end(), is_less);
  const double pivot = sorted[kth];
  for (int side = 0; side < 3; ++side)
    for (std::size_t i = 0; i < values.size(); ++i)
      if (side == (is_less(values[i], pivot) ? 0 : is_less(pivot, values[i]) ? 2 : 1))
        result.push_back(static_cast<double>(i));
  return result;
}

TEST(Arrange, long_lines_are_partitioned_without_a_sort) {
  std::mt19937 random(4);
  constexpr int n = 5003;
  for (const Dtype dtype : {float32, float64})
    for (const int kth : {0, 17, n / 2, -300, -1}) {
      std::vector<double> line;
      for (int i = 0; i < n; ++i)
        line.push_back(i % 31 == 3 ? NAN : i % 97 == 5 ? INFINITY : i * 7919 % 1009);
      const Mesh mesh = random_mesh(random);
      const Array whole =
          make({2, n}, dtype, [&](const Position& at) { return line[at[1]] * (at[0] + 1.0); });
      const Array x = device_put(whole, random_sharding(random, mesh, 2));
      const auto expected = positions_by_sides(line, kth < 0 ? kth + n : kth);
      const Array places = argpartition(x, kth), parted = partition(x, kth),
                  down = partition(transpose(x), kth, 0);
      EXPECT_EQ(parted.dtype(), dtype);
      const auto found = to_vector<double>(astype(places, float64)),
                 values = to_vector<double>(astype(parted, float64)),
                 values_down = to_vector<double>(astype(transpose(down), float64));
      for (int row = 0; row < 2; ++row)
        for (int i = 0; i < n; ++i) {
          const int at = row * n + i;
          ASSERT_EQ(found[at], expected[i]) << text_of(x.sharding()) << " kth " << kth << " at " << at;
          const double value = line[static_cast<std::size_t>(expected[i])] * (row + 1.0);
          ASSERT_TRUE(values[at] == value || (std::isnan(values[at]) && std::isnan(value))) << "at " << at;
          ASSERT_TRUE(values_down[at] == value || (std::isnan(values_down[at]) && std::isnan(value)));
        }
    }
}

TEST(Arrange, gradients_of_partition_return_to_the_elements) {
  constexpr std::int64_t n = 4100;
  const Array x = astype(arange(n) * 3001 % 4099, float64), weights = astype(arange(n), float64);
  const auto order = to_vector<double>(astype(argpartition(x, 1000), float64));
  std::vector<double> expected(n);
  for (std::int64_t i = 0; i < n; ++i) expected[static_cast<std::size_t>(order[i])] = static_cast<double>(i);
  const auto weighted = [&](const Array& y) { return sum(partition(y, 1000) * weights); };
  EXPECT_EQ(to_vector<double>(grad(weighted)(x)), expected);
}

TEST(Arrange, comparing) {
  const Operands o = operands();
  EXPECT_TRUE(item<bool>(array_equal(o.u, o.u)));
  EXPECT_FALSE(item<bool>(array_equal(o.u, o.x)));
  EXPECT_FALSE(item<bool>(array_equal(o.u, o.u(0))));
  EXPECT_FALSE(item<bool>(array_equal(o.z, o.z)));
  EXPECT_TRUE(item<bool>(array_equal(o.z, o.z, true)));
  EXPECT_TRUE(item<bool>(array_equiv(ones({3, 4}), ones({4}))));
  EXPECT_FALSE(item<bool>(array_equiv(ones({3, 4}), ones({3}))));
}

}  // namespace
}  // namespace tessera::test
