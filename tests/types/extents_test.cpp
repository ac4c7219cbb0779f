// Shapes with a dim more or less, of few dims and of more than lie in the object itself.
#include "types/extents.hpp"

#include <gtest/gtest.h>

namespace tessera::test {
namespace {

TEST(Extents, a_dim_is_put_in_and_taken_out_anywhere) {
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 3, 5}, Shape{2, 3, 5, 7, 11}})
    for (int at = 0; at <= shape.ndim(); ++at) {
      const Shape more = with_dim(shape, at, 0);
      EXPECT_EQ(more.ndim(), shape.ndim() + 1);
      EXPECT_EQ(more[static_cast<std::size_t>(at)], 0);
      EXPECT_EQ(without_dim(more, at), shape) << to_string(more);
    }
}

TEST(Extents, shapes_are_joined_cut_and_filled_up) {
  const Shape shape{2, 3, 5, 7, 11};
  for (int n = 0; n <= shape.ndim(); ++n) EXPECT_EQ(join(without_last(shape, n), Shape()).ndim(), 5 - n);
  EXPECT_EQ(join({2, 3}, {5, 7, 11}), shape);
  EXPECT_EQ(without_last(shape, 2), (Shape{2, 3, 5}));
  EXPECT_EQ(with_ones({2, 3}, 4), (Shape{2, 3, 1, 1}));
  EXPECT_EQ(with_ones({2, 3}, 1), (Shape{2, 3}));
}

}  // namespace
}  // namespace tessera::test
