// Inserting, deleting and replacing parts, on every sharding.
#include <tessera/debug.hpp>
#include <tessera/ops/edit.hpp>
#include <tessera/runtime.hpp>

#include "ops/numeric/operands.hpp"
#include "support/errors.hpp"

namespace tessera::test {
namespace {

TEST(Edit, a_mask_takes_as_many_values_as_it_chooses) {
  EXPECT_THAT(error_of<ShapeError>([] {
                static_cast<void>(arange(5).at(arange(5) > 2).set(array({1, 2, 3})));
              }),
              testing::HasSubstr(
                  "the mask chooses 2 of (5,), but there are 3 values; give one for each, or one for all"));
}

TEST(Edit, places_out_of_range_are_refused) {
  const Array x = ones({3, 4});
  EXPECT_THAT(error_of<IndexError>([&] { static_cast<void>(delete_(x, {3})); }),
              testing::HasSubstr("place 3 is out of range for an axis of extent 3"));
  EXPECT_THAT(error_of<IndexError>([&] { static_cast<void>(insert(x, 4, 0.0)); }),
              testing::HasSubstr("place 4 is out of range"));
  EXPECT_THAT(error_of<ShapeError>([&] { static_cast<void>(fill_diagonal(ones(3), 0.0)); }),
              testing::HasSubstr("has no diagonal"));
}

TEST(Known, take_without_an_axis_counts_all_elements) {
  const Array x = device_put(arange(15).reshape(5, 3), make_mesh({device_count()}, {"x"}), P("x"));
  EXPECT_THAT(to_vector<std::int32_t>(take(x, array({4, -1, 0}))), testing::ElementsAre(4, 14, 0));
  EXPECT_EQ(take(x, argsort(ravel(-x))({slice(0, 2)}).reshape(2, 1)).shape(), (Shape{2, 1}));
  EXPECT_THAT(error_of<IndexError>([&] { eval(take(x, array({15}))); }), testing::HasSubstr("15"));
}
TEST(Known, take_refuses_known_indices_out_of_range_and_clamps_in_a_trace) {
  EXPECT_THAT(error_of<IndexError>([] {
                static_cast<void>(take(arange(10.f), array({0, 50}), 0));
              }),
              testing::HasSubstr("the indices go from 0 to 50, but dimension 0 has the extent 10"));
  EXPECT_EQ(to_vector<float>(take(arange(10.f), array({0, 50}), 0, "clip")), (std::vector<float>{0, 9}));
  EXPECT_EQ(to_vector<float>(jit([](const Array& x) {
              return take(x, array({0, 50}), 0);
            })(arange(10.f))),
            (std::vector<float>{0, 9}));
}

TEST(Known, quantile_refuses_known_parts_out_of_range) {
  EXPECT_THAT(error_of<ArgumentError>([] { static_cast<void>(quantile(arange(4.f), 1.5)); }),
              testing::HasSubstr("1.5 is no part of the elements, which goes from 0 to 1"));
  EXPECT_THAT(error_of<ArgumentError>([] { static_cast<void>(percentile(arange(4.f), -3)); }),
              testing::HasSubstr("from 0 to 100"));
  EXPECT_THAT(error_of<ArgumentError>([] {
                static_cast<void>(quantile(arange(4.f), array({0.5f, NAN})));
              }),
              testing::HasSubstr("nan is no part"));
  EXPECT_TRUE(std::isnan(item<float>(jit([](const Array& x) { return quantile(x, NAN); })(arange(4.f)))));
  EXPECT_EQ(item<float>(jit([](const Array& x) { return quantile(x, 1.5); })(arange(4.f))), 3);
}

TEST(Everyday, arrays_of_braces_take_a_dtype_or_a_shape) {
  EXPECT_EQ(array({1, 2, 3}, float64).dtype(), float64);
  EXPECT_EQ(array(2).dtype(), int32);
  EXPECT_EQ(array(2.f).shape(), Shape{});
  EXPECT_EQ(item<double>(array(1.5, float64)), 1.5);
  EXPECT_EQ(array(true).dtype(), bool_);
  EXPECT_EQ(to_vector<double>(array({0.1, 2.5}, float32)), (std::vector<double>{0.1f, 2.5}));
  EXPECT_EQ(array({1., 2.}, {2, 1}).shape(), (Shape{2, 1}));
  EXPECT_EQ(to_vector<int>(array({{1, 2}, {3, 4}}, int64)), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(to_vector<int>(array(std::vector<int>{7, 8}, uint8)), (std::vector<int>{7, 8}));
}

TEST(Everyday, integers_are_shifted_by_operators) {
  EXPECT_EQ(to_vector<int>(array({1, 3}) << 2), (std::vector<int>{4, 12}));
  EXPECT_EQ(to_vector<int>(array({8, 3}) >> 1), (std::vector<int>{4, 1}));
  EXPECT_EQ(to_vector<int>(1 << array({0, 4})), (std::vector<int>{1, 16}));
}

TEST(Everyday, print_takes_whatever_can_be_written) {
  testing::internal::CaptureStdout();
  print("a is", array({1, 2}), 3, Shape{2, 1}, float32);
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_EQ(text, process_index() == 0 ? "a is [1 2] 3 (2, 1) float32\n" : "");
}

TEST(Ranges, an_element_has_the_same_bits_wherever_it_is_computed) {
  const auto whole = to_vector<double>(linspace(0.1, 1.7, 53, float64));
  for (int i = 0; i < 53; ++i) EXPECT_EQ(item<double>(linspace(0.1, 1.7, 53, float64)(i)), whole[i]);
}

}  // namespace
}  // namespace tessera::test
