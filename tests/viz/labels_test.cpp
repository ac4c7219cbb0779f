#include "viz/labels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "viz/palette.hpp"
#include "viz/text_layout.hpp"

namespace tessera::viz {
namespace {

using ::testing::ElementsAre;

TEST(LabelsTest, runs_of_three_and_more_become_ranges) {
  EXPECT_EQ(full_label({0, 2, 4, 6}), "CPU 0,2,4,6");
  EXPECT_EQ(short_label({0, 1, 2, 3, 8}), "CPU 0-3,8");
  EXPECT_EQ(short_label({0, 2, 4, 6}), "CPU 0-6:2");
  EXPECT_EQ(short_label({0, 1}), "CPU 0,1");
  EXPECT_EQ(short_label({0, 1, 8, 9, 10, 20}), "CPU 0,1,8-10,20");
  EXPECT_EQ(short_label({7}), "CPU 7");
}

TEST(LabelsTest, wrapped_labels_break_after_commas_and_count_what_is_cut) {
  EXPECT_THAT(wrap_label("CPU 0,2,5,11", 9, 3), ElementsAre("CPU 0,2,", "5,11"));
  EXPECT_THAT(wrap_label("CPU 0,2,5,11,17,23,40", 9, 2), ElementsAre("CPU 0,2,", "5,+4 more"));
  EXPECT_THAT(wrap_label("CPU 123456", 4, 2), ElementsAre("CPU 123456"));
}

TEST(LabelsTest, words_wrap_at_blanks) {
  EXPECT_THAT(wrap_words("one two three", 7), ElementsAre("one two", "three"));
}

TEST(LayoutTest, shares_are_proportional_above_what_each_needs) {
  EXPECT_THAT(share_out(60, {3, 2, 1}, {1, 1, 1}), ElementsAre(30, 20, 10));
  EXPECT_THAT(share_out(60, {3, 2, 0}, {1, 1, 10}), ElementsAre(30, 20, 10));
  EXPECT_THAT(share_out(10, {1, 1, 1}, {1, 1, 1}), ElementsAre(4, 3, 3));
  EXPECT_THAT(share_out(5, {1, 1}, {4, 4}), ElementsAre(4, 4));  // needs take precedence over the total
  EXPECT_THAT(share_out(9, {0, 0}, {2, 3}), ElementsAre(2, 3));
}

TEST(LayoutTest, items_go_to_as_few_lines_as_possible_and_fill_them_evenly) {
  EXPECT_THAT(break_lines(std::vector<int>(16, 6), 1, 80), ElementsAre(8, 8));
  EXPECT_THAT(break_lines({5, 5}, 1, 80), ElementsAre(2));
  EXPECT_THAT(break_lines({100, 5}, 1, 20), ElementsAre(1, 1));  // an item wider than the line gets its own
}

TEST(PaletteTest, eight_cells_walk_the_map_in_steps_of_half_its_length) {
  std::vector<std::string> colours;
  for (int k = 0; k < 8; ++k) colours.push_back(hex(palette(jax_colour(k, 8))));
  EXPECT_THAT(colours, ElementsAre("#393b79", "#d6616b", "#8ca252", "#de9ed6", "#e7cb94", "#6b6ecf",
                                   "#a55194", "#8c6d31"));
}

}  // namespace
}  // namespace tessera::viz
