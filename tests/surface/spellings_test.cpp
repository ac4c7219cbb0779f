// Spellings that users of NumPy and JAX try first: structured bindings, mixed numbers, methods, brackets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/errors.hpp"

// The tests are outside tessera's namespace and find names as a user's program does.
using namespace tessera;

namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

std::string line(unsigned number) { return "spellings_test.cpp:" + std::to_string(number); }
Array grid() { return reshape(arange(6.f), {2, 3}); }

// ---- structured bindings ----

TEST(bindings, split_gives_as_many_keys) {
  const auto [a, b] = random::split<2>(random::PRNGKey(7));
  const auto keys = random::split(random::key(7), 2);
  EXPECT_EQ(to_vector<unsigned>(a.data), to_vector<unsigned>(keys[0].data));
  EXPECT_EQ(to_vector<unsigned>(b.data), to_vector<unsigned>(keys[1].data));
}
TEST(bindings, split_gives_as_many_parts) {
  const auto [left, middle, right] = split<3>(grid(), 1);
  EXPECT_THAT(to_vector<float>(left), ElementsAre(0, 3));
  EXPECT_THAT(to_vector<float>(middle), ElementsAre(1, 4));
  EXPECT_THAT(to_vector<float>(right), ElementsAre(2, 5));
}
TEST(bindings, meshgrid) {
  const auto [x, y] = meshgrid<2>({arange(3), arange(2)});
  EXPECT_THAT(to_vector<int>(x), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(to_vector<int>(y), ElementsAre(0, 0, 0, 1, 1, 1));
  const auto [i, j] = meshgrid<2>({arange(3), arange(2)}, "ij");
  EXPECT_THAT(to_vector<int>(i), ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(to_vector<int>(j), ElementsAre(0, 1, 0, 1, 0, 1));
}
TEST(bindings, meshgrid_of_another_number_of_axes_is_refused) {
  EXPECT_THAT(error_of<ArgumentError>([] { return meshgrid<2>({arange(3)}); }),
              AllOf(HasSubstr("meshgrid<2> is given 1 array"), HasSubstr(line(__LINE__ - 1))));
}
TEST(bindings, shape) {
  const auto [rows, columns] = grid().shape<2>();
  EXPECT_EQ(rows, 2);
  EXPECT_EQ(columns, 3);
}
TEST(bindings, shape_of_another_number_of_dims_is_refused) {
  const auto text = error_of<ShapeError>([] { return grid().shape<3>(); });
  const auto here = line(__LINE__ - 1);
  EXPECT_THAT(text, AllOf(HasSubstr("the array has 2 dimensions, (2, 3), and not 3"), HasSubstr(here)));
}

// ---- making arrays ----

TEST(shapes, one_number_a_vector_or_an_array) {
  const std::vector<int> ints{2, 3};
  EXPECT_EQ(zeros(3).shape(), Shape{3});
  EXPECT_EQ(ones(std::size_t{4}, int32).shape(), Shape{4});
  EXPECT_EQ(zeros(ints).shape(), (Shape{2, 3}));
  EXPECT_EQ(zeros(std::vector<std::int64_t>{5, 1}).shape(), (Shape{5, 1}));
  EXPECT_EQ(zeros(grid().shape<2>()).shape(), (Shape{2, 3}));
  EXPECT_EQ(full(2, 1.5).shape(), Shape{2});
  EXPECT_EQ(random::normal(random::key(0), 3).shape(), Shape{3});
  EXPECT_EQ(random::gamma(random::key(0), 1.0, 3).shape(), Shape{3});
  EXPECT_EQ(reshape(grid(), 6).shape(), Shape{6});
}
TEST(shapes, a_negative_extent_is_refused) {
  EXPECT_THAT(error_of<ShapeError>([] { return zeros(-3); }), HasSubstr(line(__LINE__)));
}
TEST(arange, numbers_of_several_types) {
  EXPECT_THAT(to_vector<float>(arange(0, 1, 0.25)), ElementsAre(0, 0.25f, 0.5f, 0.75f));
  EXPECT_EQ(arange(0, 1, 0.25).dtype(), float32);
  EXPECT_EQ(arange(0, 3.f).dtype(), float32);
  EXPECT_EQ(arange(1, std::int64_t{4}).dtype(), int32);
  EXPECT_THAT(to_vector<int>(arange(std::size_t{3})), ElementsAre(0, 1, 2));
}
TEST(arange, takes_a_dtype) {
  EXPECT_EQ(arange(3, float64).dtype(), float64);
  EXPECT_EQ(arange(1, 3, uint8).dtype(), uint8);
  EXPECT_EQ(arange(0, 10, 3, int64).dtype(), int64);
  EXPECT_THAT(to_vector<double>(arange(0, 10, 3, float64)), ElementsAre(0, 3, 6, 9));
  EXPECT_THAT(to_vector<int>(arange(0, 2.5, 0.5, int32)), ElementsAre(0, 0, 1, 1, 2));
}
TEST(arange, values_that_do_not_fit_the_dtype_are_refused) {
  EXPECT_THAT(error_of<ArgumentError>([] { return arange(300, int8); }),
              AllOf(HasSubstr("do not fit int8"), HasSubstr(line(__LINE__ - 1))));
  EXPECT_THAT(error_of<ArgumentError>([] { return arange(-1, 2, uint32); }), HasSubstr("do not fit uint32"));
}
TEST(linspace, takes_a_dtype_and_numbers_of_several_types) {
  EXPECT_EQ(linspace(0, 1.5, 4, float64).dtype(), float64);
  EXPECT_THAT(to_vector<double>(linspace(0, 1.5, 4, float64)), ElementsAre(0, 0.5, 1, 1.5));
  EXPECT_EQ(linspace(0, 1, float64).shape(), Shape{50});
  EXPECT_THAT(to_vector<int>(linspace(0, 4, 5, int32)), ElementsAre(0, 1, 2, 3, 4));
}
TEST(braces, nest_to_three_levels) {
  const Array x = array({{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}, {{7.f, 8.f}, {9.f, 10.f}, {11.f, 12.f}}});
  EXPECT_EQ(x.shape(), (Shape{2, 3, 2}));
  EXPECT_EQ(x.dtype(), float32);
  EXPECT_EQ(item<float>(x(1, 0, 1)), 8);
  EXPECT_EQ(array({{{1, 2, 3}}}).shape(), (Shape{1, 1, 3}));
  EXPECT_EQ(array({{1, 2, 3}}).shape(), (Shape{1, 3}));
}
TEST(braces, planes_of_different_sizes_are_refused) {
  const auto text = error_of<ShapeError>([] { return array({{{1, 2}, {3, 4}}, {{5, 6}}}); });
  const auto here = line(__LINE__ - 1);
  EXPECT_THAT(text, AllOf(HasSubstr("plane 1 has 1 row, the first plane has 2"), HasSubstr(here)));
  const auto rows = error_of<ShapeError>([] { return array({{{1, 2}, {3, 4}}, {{5, 6}, {7}}}); });
  EXPECT_THAT(rows, HasSubstr("row 3 has 1 value, the first row has 2"));
}

// ---- NumPy's arguments ----

TEST(arguments, splits_dims_and_widths) {
  const auto parts = split(grid(), {1}, 1);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_THAT(to_vector<float>(parts[0]), ElementsAre(0, 3));
  EXPECT_EQ(split(grid(), 3, 1).size(), 3u);
  EXPECT_EQ(expand_dims(grid(), {0, -1}).shape(), (Shape{1, 2, 3, 1}));
  EXPECT_THAT(error_of<ArgumentError>([] { return expand_dims(grid(), {0, 0}); }), HasSubstr("named twice"));
  EXPECT_THAT(to_vector<float>(pad(array({1.f, 2.f}), 1, "edge")), ElementsAre(1, 1, 2, 2));
  EXPECT_EQ(pad(grid(), 2).shape(), (Shape{6, 7}));
  EXPECT_THAT(to_vector<float>(delete_(arange(4.f), 1)), ElementsAre(0, 2, 3));
  EXPECT_THAT(to_vector<int>(where(grid() > 3)[1]), ElementsAre(1, 2));
}
TEST(arguments, statistics) {
  EXPECT_FLOAT_EQ(item<float>(stddev(array({1.f, 3.f}), {.correction = 1})), std::sqrt(2.f));
  EXPECT_EQ(var(grid(), {.axis = 1, .keepdims = true, .correction = 1}).shape(), (Shape{2, 1}));
  EXPECT_FLOAT_EQ(item<float>(median(grid(), {0, 1})), 2.5f);
  EXPECT_EQ(median(grid(), {1, 0}, true).shape(), (Shape{1, 1}));
  const Array t = array({0.f, 1.f, 3.f, 4.f});
  EXPECT_THAT(to_vector<float>(gradient(t * t, t)), ElementsAre(1, 2, 6, 7));
  EXPECT_THAT(error_of<ShapeError>([] { return gradient(arange(4.f), arange(3.f)); }),
              HasSubstr("coordinates"));
}
TEST(arguments, transforms_by_position) {
  EXPECT_EQ(fft::fft(grid(), 4, 0).shape(), (Shape{4, 3}));
  EXPECT_EQ(fft::irfft(fft::rfft(grid(), 3, 1), 3, 1).shape(), (Shape{2, 3}));
}
TEST(arguments, operators_that_assign) {
  Array x = arange(5);
  x <<= 1;
  x |= 1;
  x ^= 2;
  x &= 7;
  x %= 4;
  x >>= 1;
  EXPECT_THAT(to_vector<int>(x), ElementsAre(1, 0, 1, 0, 1));
}
TEST(arguments, segments_by_id) {
  const Array ids = array({1, 0, -1, 1, 9}), x = array({3, 4, 100, 5, 100});
  EXPECT_THAT(to_vector<int>(segment_sum(x, ids, 3)), ElementsAre(4, 8, 0));
  EXPECT_THAT(to_vector<int>(segment_prod(x, ids, 3)), ElementsAre(4, 15, 1));
  EXPECT_THAT(to_vector<int>(segment_max(x, ids, 3)), ElementsAre(4, 5, std::numeric_limits<int>::lowest()));
  EXPECT_THAT(to_vector<int>(segment_min(x, ids, 3)), ElementsAre(4, 3, std::numeric_limits<int>::max()));
  EXPECT_EQ(item<float>(segment_max(astype(x, float32), ids, 3)(2)), -std::numeric_limits<float>::infinity());
}
TEST(arguments, everything_is_in_one_header) {
  EXPECT_EQ(nn::relu(array({-1.f})).block_until_ready().item<float>(), 0);
  EXPECT_THAT(to_vector<int>(bitwise_count(array({-1, 7, -7}))), ElementsAre(1, 3, 3));
  EXPECT_EQ(bitwise_count(array({-1})).dtype(), uint8);
}

// ---- other names ----

TEST(names, pow_ravel_stddev) {
  EXPECT_THAT(to_vector<float>(pow(arange(4.f), 2)), ElementsAre(0, 1, 4, 9));
  EXPECT_THAT(to_vector<float>(pow(2, arange(3.f))), ElementsAre(1, 2, 4));
  EXPECT_THAT(to_vector<float>(ravel(grid())), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(to_vector<float>(stddev(grid(), 1)), ElementsAre(std::sqrt(2.f / 3), std::sqrt(2.f / 3)));
  EXPECT_EQ(stddev(grid(), {.keepdims = true}).shape(), (Shape{1, 1}));
  EXPECT_FLOAT_EQ(item<float>(stddev(array({1.f, 3.f}), {}, false, 1)), std::sqrt(2.f));
}
TEST(names, dtype_of_sums_by_name) {
  const Array x = array({1.f, 3.f});
  EXPECT_EQ(sum(x, {.dtype = float64}).dtype(), float64);
  EXPECT_EQ(prod(x, {.axis = 0, .keepdims = true, .dtype = int32}).shape(), Shape{1});
  EXPECT_EQ(item<int>(prod(x, {.dtype = int32})), 3);
  EXPECT_EQ(sum(x, AxisOptions{.keepdims = true}).shape(), Shape{1});
  EXPECT_EQ(var(grid(), {}).shape(), Shape{});
  EXPECT_EQ(sum(grid(), {0, 1}).shape(), Shape{});
}
TEST(names, named_sharding_is_a_type_too) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const NamedSharding rows(mesh, P("x"));
  const Sharding same = NamedSharding(mesh, P("x"));
  EXPECT_EQ(rows, same);
  EXPECT_EQ(rows.spec(), P("x"));
  EXPECT_EQ(rows.mesh(), mesh);
  NamedSharding other = device_put(arange(8), rows).sharding();
  EXPECT_EQ(other, same);
  other = NamedSharding(mesh, P());
  EXPECT_TRUE(other.is_fully_replicated());
  EXPECT_EQ((device_count() > 0 ? other : rows), Sharding::replicated(mesh));
  const auto f = jit([](Array x) { return x + 1; }, {.in_shardings = {rows}, .out_shardings = rows});
  EXPECT_EQ(f(arange(8)).sharding(), same);
}

// ---- methods and brackets ----

TEST(methods, reduce_as_the_functions_do) {
  const Array x = grid();
  EXPECT_EQ(item<float>(x.sum()), 15);
  EXPECT_THAT(to_vector<float>(x.mean(0)), ElementsAre(1.5f, 2.5f, 3.5f));
  EXPECT_EQ(x.max({.axis = 1, .keepdims = true}).shape(), (Shape{2, 1}));
  EXPECT_EQ(x.sum({0, 1}, true).shape(), (Shape{1, 1}));
  EXPECT_EQ((x + 1).prod().item<float>(), 720);
  EXPECT_EQ(x.min().item<float>(), 0);
  EXPECT_FLOAT_EQ(x.var().item<float>(), 35.f / 12);
  EXPECT_FLOAT_EQ(x.std().item<float>(), std::sqrt(35.f / 12));
  EXPECT_FALSE(x.all().item<bool>());
  EXPECT_TRUE(x.any().item<bool>());
  EXPECT_EQ(x.argmax().item<int>(), 5);
  EXPECT_THAT(x.argmin(1).to_vector<int>(), ElementsAre(0, 0));
  EXPECT_THAT(x.cumsum(1).to_vector<float>(), ElementsAre(0, 1, 3, 3, 7, 12));
  EXPECT_THAT((x + 1).cumprod(1).to_vector<float>(), ElementsAre(1, 2, 6, 4, 20, 120));
}
TEST(methods, arrange_as_the_functions_do) {
  const Array x = grid();
  EXPECT_EQ(x.reshape(3, 2).shape(), (Shape{3, 2}));
  EXPECT_EQ(x.reshape(-1).shape(), Shape{6});
  EXPECT_EQ(x.reshape({1, -1, 2}).shape(), (Shape{1, 3, 2}));
  EXPECT_EQ(x.reshape(1, 2, 3, 1).shape(), (Shape{1, 2, 3, 1}));
  EXPECT_EQ(x.ravel().shape(), Shape{6});
  EXPECT_THAT(x.transpose().to_vector<float>(), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_EQ(x.transpose({1, 0}).shape(), (Shape{3, 2}));
  EXPECT_EQ(x.swapaxes(0, 1).shape(), (Shape{3, 2}));
  EXPECT_EQ(x.reshape(1, 6).squeeze().shape(), Shape{6});
  EXPECT_EQ(x.astype(int32).dtype(), int32);
  EXPECT_THAT((x / 2).round().to_vector<float>(), ElementsAre(0, 0, 1, 2, 2, 2));
  EXPECT_THAT(x.dot(x.T()).to_vector<float>(), ElementsAre(5, 14, 14, 50));
  const Array z = make_complex(arange(2.f), 1);
  EXPECT_THAT(z.real().to_vector<float>(), ElementsAre(0, 1));
  EXPECT_THAT(z.conj().imag().to_vector<float>(), ElementsAre(-1, -1));
  EXPECT_THAT(x.copy().to_vector<int>(), ElementsAre(0, 1, 2, 3, 4, 5));
}
TEST(methods, errors_name_the_users_line) {
  EXPECT_THAT(error_of<IndexError>([] { return grid().sum(5); }), HasSubstr(line(__LINE__)));
  EXPECT_THAT(error_of<ShapeError>([] { return grid().reshape(4, 2); }), HasSubstr(line(__LINE__)));
  EXPECT_THAT(error_of<ShapeError>([] { return grid().reshape({4, 2}); }), HasSubstr(line(__LINE__)));
  EXPECT_THAT(error_of<ShapeError>([] { return grid().item<float>(); }), HasSubstr(line(__LINE__)));
}
TEST(brackets, are_index_expressions_of_one_part) {
  const Array x = grid();
  EXPECT_THAT(to_vector<float>(x[1]), ElementsAre(3, 4, 5));
  EXPECT_THAT(to_vector<float>(x[-1][0]), ElementsAre(3));
  EXPECT_EQ(x[slice(0, 1)].shape(), (Shape{1, 3}));
  EXPECT_EQ(x[newaxis].shape(), (Shape{1, 2, 3}));
  EXPECT_THAT(to_vector<float>(x[array({1, 0})]), ElementsAre(3, 4, 5, 0, 1, 2));
  EXPECT_THAT(error_of<IndexError>([] { return grid()[7]; }), HasSubstr(line(__LINE__)));
}

// ---- trees ----

class Net {
  TESSERA_TREE(Net, w, b)
 public:
  Net(Array weights, Array bias) : w(std::move(weights)), b(std::move(bias)) {}
  Array operator()(const Array& x) const { return matmul(x, w) + b; }
  const Array& bias() const { return b; }
  int calls = 0;

 private:
  Array w, b;
};
TEST(trees, a_class_with_private_members_names_them) {
  const Net net(ones({3, 2}), zeros(2));
  EXPECT_EQ(tree_leaves(net).size(), 2U);
  const auto loss = [](const Net& n, const Array& x) { return sum(square(n(x))); };
  const Net gradient = grad(loss)(net, ones({1, 3}));
  EXPECT_THAT(to_vector<float>(gradient.bias()), ElementsAre(6, 6));
  const auto step = jit([&](const Net& n, const Array& x) {
    return tree_map([](const Array& p, const Array& g) { return p - 0.5f * g; }, n, grad(loss)(n, x));
  });
  EXPECT_THAT(to_vector<float>(step(net, ones({1, 3})).bias()), ElementsAre(-3, -3));
}
TEST(trees, members_that_are_not_named_are_copied_along) {
  Net net(ones({3, 2}), zeros(2));
  net.calls = 3;
  EXPECT_EQ(tree_map([](const Array& x) { return x + 1; }, net).calls, 3);
}

}  // namespace
