#include "mesh/axes.hpp"

#include <gtest/gtest.h>

namespace tessera::test {
namespace {

const Mesh cube = abstract_mesh({2, 3, 2}, {"x", "y", "z"});  // device 4 is (0, 2, 0)

TEST(devices_along, multiplies_the_sizes_of_the_axes) {
  EXPECT_EQ(devices_along(cube, {1}), 3);
  EXPECT_EQ(devices_along(cube, {0, 1, 2}), 12);
  EXPECT_EQ(devices_along(cube, no_axes), 1);
}

TEST(group_along, is_the_line_of_devices_through_one) {
  EXPECT_EQ(group_along(cube, {1}, 4), (std::vector<int>{0, 2, 4}));
  EXPECT_EQ(group_along(cube, {1}, 7), (std::vector<int>{7, 9, 11}));
}

TEST(group_along, has_the_first_axis_major) {
  EXPECT_EQ(group_along(cube, {0, 2}, 0), (std::vector<int>{0, 1, 6, 7}));
  EXPECT_EQ(group_along(cube, {2, 0}, 0), (std::vector<int>{0, 6, 1, 7}));
}

TEST(group_along, no_axis_is_the_device_alone) {
  EXPECT_EQ(group_along(cube, no_axes, 5), std::vector<int>{5});
}

}  // namespace
}  // namespace tessera::test
