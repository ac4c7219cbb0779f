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
