// Invalid inputs to ops, each with its error text: rows 10 to 36 of tests/faults/README.md that no other
// folder tests.
#include <gmock/gmock.h>

#include <tessera/error.hpp>
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>

#include <functional>

#include "support/errors.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;

TEST(Inputs, arrays_of_two_meshes_are_refused_with_both_named) {
  if (device_count() < 2) GTEST_SKIP() << "there is one mesh";
  const Array x = device_put(ones({4}), make_mesh({1}, {"x"}, {devices()[0]}), P("x")),
              y = device_put(ones({4}), make_mesh({1}, {"x"}, {devices()[1]}), P("x"));
  EXPECT_THAT(error_of<ShardingError>([&] { return x + y; }), HasSubstr("different device sets"));
}

TEST(Inputs, an_array_that_holds_nothing_is_refused) {
  Array moved = ones({2});
  const Array other = std::move(moved);
  for (const Array& empty : {Array(), moved}) {
    EXPECT_THAT(error_of<ArgumentError>([&] { return empty + 1; }), HasSubstr("holds nothing"));
    EXPECT_THAT(error_of<ArgumentError>([&] { return sum(empty); }), HasSubstr("holds nothing"));
    EXPECT_THAT(error_of<ArgumentError>([&] { return to_vector<float>(empty); }), HasSubstr("holds nothing"));
  }
  EXPECT_EQ(to_vector<float>(other), (std::vector<float>{1, 1}));
}

TEST(Inputs, no_elements_no_dims_and_many_dims) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array none = device_put(zeros({0, 3}), mesh, P("x"));
  EXPECT_EQ(item<float>(sum(none)), 0);
  EXPECT_EQ((none + 1).shape(), (Shape{0, 3}));
  EXPECT_THAT(error_of<UserError>([&] { return max(none); }), HasSubstr("max"));
  EXPECT_EQ(item<float>(device_put(full({}, 3.0f), mesh, P()) * 2), 6);
  std::vector<std::int64_t> extents(32, 1);
  extents[5] = 3, extents[31] = 2;
  const Array deep = device_put(ones(Shape(extents)), mesh, P());
  EXPECT_EQ(item<float>(sum(deep + deep)), 12);
  EXPECT_EQ(transpose(deep).shape()[0], 2);
}

TEST(Inputs, a_reshape_to_another_number_of_elements) {
  const Array x = ones({2, 3});
  EXPECT_THAT(error_of<ShapeError>([&] { return reshape(x, {4}); }), HasSubstr("(2, 3)"));
  EXPECT_THAT(error_of<ShapeError>([&] { return reshape(x, {-1, 4}); }), HasSubstr("(2, 3)"));
  EXPECT_THAT(error_of<UserError>([&] { return reshape(x, {-1, -1}); }), HasSubstr("-1"));
  EXPECT_THAT(error_of<UserError>([&] { return reshape(x, {-2, 3}); }), HasSubstr("-2"));
}

TEST(Inputs, shapes_that_do_not_broadcast_or_multiply) {
  EXPECT_THAT(error_of<ShapeError>([] {
                ones({1000, 8}) + ones({8, 1000});
              }),
              testing::AllOf(HasSubstr("(1000, 8)"), HasSubstr("(8, 1000)")));
  EXPECT_THAT(error_of<ShapeError>([] {
                matmul(ones({2, 3}), ones({4, 2}));
              }),
              testing::AllOf(HasSubstr("inner sizes differ"), HasSubstr("(2, 3)"), HasSubstr("(4, 2)")));
  EXPECT_THAT(error_of<ShapeError>([] { return where(ones({2}) > 0, ones({3}), 0.0f); }), HasSubstr("(3,)"));
}

TEST(Inputs, axes_that_are_not_there_or_twice) {
  const Array x = ones({2, 3});
  EXPECT_THAT(error_of<UserError>([&] { return sum(x, 2); }), HasSubstr("axis 2"));
  EXPECT_THAT(error_of<UserError>([&] { return sum(x, -3); }), HasSubstr("axis -3"));
  EXPECT_THAT(error_of<UserError>([&] { return sum(x, Axes{0, 0}); }), HasSubstr("twice"));
  EXPECT_THAT(error_of<UserError>([&] { return sum(x, Axes{1, -1}); }), HasSubstr("twice"));
  EXPECT_THAT(error_of<UserError>([&] { return transpose(x, {0, 0}); }), HasSubstr("once"));
}

TEST(Inputs, ranges_without_an_end) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                   inf = std::numeric_limits<double>::infinity();
  EXPECT_THAT(error_of<ArgumentError>([] { return arange(0.0, 1.0, 0.0); }), HasSubstr("step"));
  EXPECT_THAT(error_of<UserError>([] { return arange(0.0, nan, 1.0); }), HasSubstr("arange"));
  EXPECT_THAT(error_of<UserError>([] { return arange(nan, 1.0, 1.0); }), HasSubstr("arange"));
  EXPECT_THAT(error_of<UserError>([] { return arange(0.0, 1.0, nan); }), HasSubstr("arange"));
  EXPECT_THAT(error_of<UserError>([] { return arange(0.0, inf, 1.0); }), HasSubstr("arange"));
  EXPECT_THAT(error_of<UserError>([] { return arange(0.0, 1e19, 1.0); }), HasSubstr("arange"));
  EXPECT_THAT(error_of<UserError>([] { return linspace(0.0, 1.0, -1); }), HasSubstr("linspace"));
}

TEST(Inputs, a_complex_number_loses_its_imaginary_part_in_a_cast_alone) {
  const Array z = array(std::vector<std::complex<double>>{{1, 2}, {3, -4}});
  EXPECT_EQ(to_vector<double>(astype(z, float64)), (std::vector<double>{1, 3}));
}

}  // namespace
}  // namespace tessera::test
