#include "ops/numeric/goldens.hpp"

namespace tessera::test {
namespace {

using Given = const Operands&;

TEST(Arrange, Joining) {
  expect_as_numpy("vstack", [](Given o) { return vstack({o.u, o.x(2)}); });
  expect_as_numpy("hstack", [](Given o) { return hstack({o.u, o.x}); });
  expect_as_numpy("hstack_lines", [](Given o) { return hstack({o.u(0), o.x(1)}); });
  expect_as_numpy("dstack", [](Given o) { return dstack({o.u, o.x}); });
  expect_as_numpy("column_stack", [](Given o) { return column_stack({o.u(slice(), 0), o.x}); });
  expect_as_numpy("block", [](Given o) { return block({{o.u, o.x}, {o.x(slice(0, 2)), o.u(slice(0, 2))}}); });
  expect_as_numpy("append", [](Given o) { return append(o.u, o.x(slice(0, 2)), 0); });
  expect_as_numpy("hstack", [](Given o) { return concat({o.u, o.x}, 1); });
}

TEST(Arrange, ShapesAndTurns) {
  expect_as_numpy("ravel", [](Given o) { return ravel(o.u); });
  expect_as_numpy("atleast_3d", [](Given o) { return atleast_3d(o.u); });
  expect_as_numpy("fliplr", [](Given o) { return fliplr(o.u); });
  expect_as_numpy("flipud", [](Given o) { return flipud(o.u); });
  expect_as_numpy("rot90", [](Given o) { return rot90(o.u); });
  expect_as_numpy("rot90_2", [](Given o) { return rot90(o.u, 2); });
  expect_as_numpy("rot90_3", [](Given o) { return rot90(o.u, -1); });
  EXPECT_EQ(atleast_2d(3.0).shape(), (Shape{1, 1}));
  EXPECT_EQ(atleast_1d(3.0).shape(), Shape{1});
  EXPECT_EQ(matrix_transpose(ones({2, 3, 4})).shape(), (Shape{2, 4, 3}));
  EXPECT_EQ(permute_dims(ones({2, 3, 4}), {2, 0, 1}).shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(unstack(ones({2, 3, 4}), 1).size(), 3u);
  EXPECT_EQ(broadcast_arrays({ones({3, 1}), ones({4})})[1].shape(), (Shape{3, 4}));
  EXPECT_THROW(fliplr(ones({3})), ShapeError);
  EXPECT_THROW(rot90(ones({3, 3}), 1, {0, -2}), IndexError);
}

TEST(Arrange, DiagonalsAndTriangles) {
  expect_as_numpy("diag", [](Given o) { return diag(o.u); });
  expect_as_numpy("diag_of_line", [](Given o) { return diag(o.u(0)); });
  expect_as_numpy("diag_above", [](Given o) { return diag(o.u(0), 2); });
  expect_as_numpy("diag_below", [](Given o) { return diag(o.u(slice(), 1), -3); });
  expect_as_numpy("diagflat", [](Given o) { return diagflat(o.u(slice(0, 2)), 1); });
  expect_as_numpy("tri", [](Given) { return tri(4, 6, 1); });
  expect_as_numpy("vander", [](Given o) { return vander(o.u(0), 4); });
  expect_as_numpy("vander_rising", [](Given o) { return vander(o.u(0), -1, true); });
  EXPECT_EQ(diag(zeros({0})).shape(), (Shape{0, 0}));
  EXPECT_THROW(diag(ones({2, 2, 2})), ShapeError);
}

TEST(Arrange, Choosing) {
  expect_as_numpy("select", [](Given o) { return select({o.x > 4, o.x < -3}, {o.u, -o.u}, 0.5); });
  expect_as_numpy("choose", [](Given o) { return choose(o.n, {o.u, -o.u, 10 * o.u}); });
  expect_as_numpy("choose_wrap", [](Given o) { return choose(o.n, {o.u, -o.u, 10 * o.u}, "wrap"); });
  EXPECT_THROW(select({ones({2}, bool_)}, {}), ArgumentError);
  EXPECT_THROW(choose(ones({2}), {ones({2})}), DtypeError);
}

TEST(Arrange, Orders) {
  expect_as_numpy("lexsort", [](Given o) { return lexsort({ravel(o.u), ravel(o.n % 3)}); });
  expect_as_numpy("lexsort_columns", [](Given o) { return lexsort({o.u, o.n % 3}, 0); });
  const Operands o = operands();
  const auto row = to_vector<double>(partition(o.u(0), 2));
  EXPECT_LE(row[0], row[2]);
  EXPECT_LE(row[2], row[4]);
  EXPECT_EQ(to_vector<double>(take_along_axis(o.u(0), argpartition(o.u(0), 2), 0)), row);
  EXPECT_THROW(partition(ones({3}), 3), IndexError);
}

TEST(Arrange, Places) {
  expect_as_numpy("unravel_1", [](Given o) { return unravel_index(abs(o.n), {4, 9})[1]; });
  expect_as_numpy("ravel_multi_index", [](Given o) {
    return ravel_multi_index({abs(o.n), o.n % 4}, {9, 4});
  });
  expect_as_numpy("indices", [](Given) { return indices({7, 5}); });
}

TEST(Arrange, Comparing) {
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
