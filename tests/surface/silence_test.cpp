// Mistakes that were once accepted silently: options by name, numbers that do not fit, conditions, indices
// out of range.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/errors.hpp"

namespace tessera::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Array grid() { return reshape(arange(6.f), {2, 3}); }
Array split_range(int n) {
  return device_put(arange(static_cast<float>(n)), make_mesh({device_count()}, {"x"}), P("x"));
}

TEST(reductions, keepdims_by_name_reduces_all_axes) {
  const Array total = sum(grid(), {.keepdims = true});
  EXPECT_EQ(total.shape(), (Shape{1, 1}));
  EXPECT_THAT(to_vector<float>(total), ElementsAre(15));
}
TEST(reductions, axis_and_keepdims_by_name) {
  const Array columns = max(grid(), {.axis = 0, .keepdims = true});
  EXPECT_EQ(columns.shape(), (Shape{1, 3}));
  EXPECT_THAT(to_vector<float>(columns), ElementsAre(3, 4, 5));
}
TEST(reductions, braces_without_names_are_axes) {
  EXPECT_EQ(sum(grid(), {}).shape(), Shape{});
  EXPECT_EQ(sum(grid(), {0, 1}).shape(), Shape{});
  EXPECT_THAT(to_vector<float>(sum(grid(), {1})), ElementsAre(3, 12));
}

TEST(numbers, one_that_does_not_fit_the_array_is_refused) {
  EXPECT_THAT(error_of<ArgumentError>([] { return array({1}) + 3000000000; }),
              HasSubstr("the number 3000000000 does not fit int32"));
  EXPECT_THAT(error_of<ArgumentError>([] { return array({1}) - 3000000000; }), HasSubstr("int32"));
}
TEST(numbers, one_that_does_not_fit_the_dtype_of_full_is_refused) {
  EXPECT_THAT(error_of<ArgumentError>([] { return full({2}, 3000000000, int32); }),
              HasSubstr("the number 3000000000 does not fit int32"));
  EXPECT_THAT(error_of<ArgumentError>([] { return full({}, 128, int8); }), HasSubstr("-128 to 127"));
}
TEST(numbers, the_last_that_fit_are_taken) {
  EXPECT_THAT(to_vector<int>(full({1}, 2147483647, int32)), ElementsAre(2147483647));
  EXPECT_THAT(to_vector<int>(full({1}, -128, int8)), ElementsAre(-128));
  EXPECT_THAT(to_vector<std::int64_t>(array({std::int64_t{1}}) + 3000000000), ElementsAre(3000000001));
}
TEST(numbers, full_has_the_dtype_of_the_kind_of_number) {
  EXPECT_EQ(full({2}, 3).dtype(), int32);
  EXPECT_EQ(full({2}, 3.0).dtype(), float32);
  EXPECT_EQ(full({2}, true).dtype(), bool_);
  EXPECT_EQ(full({2}, std::complex<double>(0, 1)).dtype(), complex64);
}

TEST(while_loop, a_condition_that_is_no_bool_is_refused) {
  const auto loop = [] {
    return while_loop([](Array x) { return x; }, [](Array x) { return x - 1.f; }, Array(full({}, 3.f)));
  };
  EXPECT_THAT(error_of<DtypeError>(loop), HasSubstr("it must be bool: compare it, as x > 0"));
}

TEST(take, clip_takes_the_first_and_the_last) {
  EXPECT_THAT(to_vector<float>(take(split_range(5), array({-9, -1, 7}), 0, "clip")), ElementsAre(0, 4, 4));
}
TEST(take, wrap_counts_on_around_the_ends) {
  EXPECT_THAT(to_vector<float>(take(split_range(5), array({5, 12, -1, -6}), 0, "wrap")),
              ElementsAre(0, 2, 4, 4));
}
TEST(take, fill_gives_nan_for_what_is_not_there) {
  const auto values = to_vector<float>(take(split_range(5), array({4, 5, -5, -6}), 0, "fill"));
  EXPECT_EQ(values[0], 4);
  EXPECT_TRUE(std::isnan(values[1]));
  EXPECT_EQ(values[2], 0);
  EXPECT_TRUE(std::isnan(values[3]));
}
TEST(take, fill_gives_the_smallest_integer) {
  EXPECT_THAT(to_vector<int>(take(array({7, 8}), array({1, 2}), 0, "fill")),
              ElementsAre(8, std::numeric_limits<int>::min()));
}
TEST(take, fill_covers_whole_slices_of_the_axis) {
  const auto values = to_vector<float>(take(grid(), array({0, 3}), 1, "fill"));
  EXPECT_EQ(values[0], 0);
  EXPECT_TRUE(std::isnan(values[1]));
  EXPECT_EQ(values[2], 3);
  EXPECT_TRUE(std::isnan(values[3]));
}
TEST(take, raise_says_how_many_are_outside) {
  EXPECT_THAT(error_of<IndexError>([] {
                return take(split_range(5), array({4, 5, -6}), 0, "raise");
              }),
              HasSubstr("2 of 3 indices are out of range for dimension 0 of extent 5"));
  EXPECT_THAT(to_vector<float>(take(split_range(5), array({4, -5}), 0, "raise")), ElementsAre(4, 0));
}
TEST(take, raise_is_refused_in_a_trace) {
  const auto f = jit([](Array i) { return take(arange(5.f), i, 0, "raise"); });
  EXPECT_THAT(error_of<ArgumentError>([&] { return f(array({1})); }),
              HasSubstr("while a function is traced"));
}
TEST(take, another_mode_is_refused) {
  EXPECT_THAT(error_of<ArgumentError>([] { return take(grid(), 0, 0, "clamp"); }),
              HasSubstr("there is no mode \"clamp\"; take clip, wrap, fill or raise"));
}

}  // namespace
}  // namespace tessera::test
