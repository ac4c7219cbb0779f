#include "types/checked.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/error.hpp>

namespace tessera {
namespace {

constexpr std::int64_t huge = std::int64_t{1} << 62;

std::string refusal(const Shape& shape, Dtype dtype = int8) {
  try {
    return std::to_string(checked_bytes(shape, dtype, "zeros"));
  } catch (const ShapeError& error) {
    return error.what();
  }
}

TEST(Checked, a_size_of_64_bits_is_exact) {
  EXPECT_EQ(checked_product(Shape{}, "zeros"), 1);
  EXPECT_EQ(checked_product(Shape{3, 0, 5}, "zeros"), 0);
  EXPECT_EQ(checked_product(Shape{huge, 1}, "zeros"), huge);
  EXPECT_EQ(checked_bytes(Shape{1 << 20, 3}, complex128, "zeros"), std::int64_t{48} << 20);
}

TEST(Checked, a_product_beyond_64_bits_names_the_call_and_the_shape) {
  EXPECT_EQ(refusal({huge, 2}),
            "zeros: the number of elements of shape (4611686018427387904, 2) does not fit 64 bits; use a "
            "smaller shape");
  EXPECT_EQ(refusal({3, 6148914691236517206}),
            "zeros: the number of elements of shape (3, 6148914691236517206) does not fit 64 bits; use a "
            "smaller shape");
}

TEST(Checked, bytes_may_overflow_where_elements_do_not) {
  EXPECT_EQ(
      refusal({huge}, float32),
      "zeros: the number of bytes (float32) of shape (4611686018427387904,) does not fit 64 bits; use a "
      "smaller shape");
}

TEST(Checked, an_extent_of_zero_does_not_hide_strides_that_overflow) {
  EXPECT_THAT(refusal({0, huge, huge}), testing::HasSubstr("does not fit 64 bits"));
  EXPECT_THAT(refusal({0, huge}, float64), testing::HasSubstr("bytes (float64)"));
}

TEST(Checked, a_negative_extent_is_named) {
  EXPECT_EQ(refusal({0, -3}), "zeros: shape (0, -3) has the negative extent -3");
}

TEST(Checked, blocks_of_the_longest_dim_do_not_wrap_around) {
  constexpr std::int64_t n = INT64_MAX;
  for (const std::int64_t parts : {1, 2, 3, 4, 1000}) {
    std::int64_t end = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      const auto range = block_range(n, parts, part);
      ASSERT_EQ(range.start, end);
      ASSERT_GE(range.stop, range.start);
      end = range.stop;
    }
    EXPECT_EQ(end, n);
  }
}

}  // namespace
}  // namespace tessera
