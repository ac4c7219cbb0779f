#include "pictures.hpp"
#include "support/errors.hpp"

#include <chrono>
#include <cmath>

#include <tessera/error.hpp>

namespace tessera::debug {
namespace {

using ::tessera::test::error_of;
using ::testing::HasSubstr;
using ::testing::Not;

class VisualizeTest : public PictureTest {};

// ---- pictures of JAX's own tests ----

TEST_F(VisualizeTest, one_device_is_one_box) {
  EXPECT_EQ(framed({5}, over({1}, {"x"}, P("x"))),
            "┌───────┐\n"
            "│ CPU 0 │\n"
            "└───────┘\n");
}

TEST_F(VisualizeTest, scale_widens_the_box) {
  VisualizeOptions options;
  options.scale = 8;
  EXPECT_EQ(framed({5}, over({1}, {"x"}, P("x")), options),
            "┌──────────────────────────────────────┐\n"
            "│                CPU 0                 │\n"
            "└──────────────────────────────────────┘\n");
}

TEST_F(VisualizeTest, two_axes_split_rows_and_columns) {
  EXPECT_EQ(framed({8, 8}, over({8, 4}, {"x", "y"}, P("x", "y"))),
            "┌───────┬───────┬───────┬───────┐\n"
            "│ CPU 0 │ CPU 1 │ CPU 2 │ CPU 3 │\n"
            "├───────┼───────┼───────┼───────┤\n"
            "│ CPU 4 │ CPU 5 │ CPU 6 │ CPU 7 │\n"
            "├───────┼───────┼───────┼───────┤\n"
            "│ CPU 8 │ CPU 9 │CPU 10 │CPU 11 │\n"
            "├───────┼───────┼───────┼───────┤\n"
            "│CPU 12 │CPU 13 │CPU 14 │CPU 15 │\n"
            "├───────┼───────┼───────┼───────┤\n"
            "│CPU 16 │CPU 17 │CPU 18 │CPU 19 │\n"
            "├───────┼───────┼───────┼───────┤\n"
            "│CPU 20 │CPU 21 │CPU 22 │CPU 23 │\n"
            "├───────┼───────┼───────┼───────┤\n"
            "│CPU 24 │CPU 25 │CPU 26 │CPU 27 │\n"
            "├───────┼───────┼───────┼───────┤\n"
            "│CPU 28 │CPU 29 │CPU 30 │CPU 31 │\n"
            "└───────┴───────┴───────┴───────┘\n");
}

TEST_F(VisualizeTest, replicas_share_a_cell) {
  EXPECT_EQ(framed({8, 8}, over({8, 4}, {"x", "y"}, P("x", None))),
            "┌───────────────────────┐\n"
            "│      CPU 0,1,2,3      │\n"
            "├───────────────────────┤\n"
            "│      CPU 4,5,6,7      │\n"
            "├───────────────────────┤\n"
            "│     CPU 8,9,10,11     │\n"
            "├───────────────────────┤\n"
            "│    CPU 12,13,14,15    │\n"
            "├───────────────────────┤\n"
            "│    CPU 16,17,18,19    │\n"
            "├───────────────────────┤\n"
            "│    CPU 20,21,22,23    │\n"
            "├───────────────────────┤\n"
            "│    CPU 24,25,26,27    │\n"
            "├───────────────────────┤\n"
            "│    CPU 28,29,30,31    │\n"
            "└───────────────────────┘\n");
  EXPECT_EQ(framed({8, 8}, over({4, 2}, {"x", "y"}, P(None, "y"))),
            "┌───────────┬───────────┐\n"
            "│           │           │\n"
            "│           │           │\n"
            "│           │           │\n"
            "│           │           │\n"
            "│CPU 0,2,4,6│CPU 1,3,5,7│\n"
            "│           │           │\n"
            "│           │           │\n"
            "│           │           │\n"
            "│           │           │\n"
            "└───────────┴───────────┘\n");
}

TEST_F(VisualizeTest, a_wide_array_stops_at_max_width) {
  std::string text = framed({128, 10000}, over({8, 4}, {"x", "y"}, P("x", None)));
  EXPECT_THAT(
      text, HasSubstr("│                                CPU 8,9,10,11                                 │\n"));
  EXPECT_THAT(
      text, HasSubstr("│                               CPU 12,13,14,15                                │\n"));
  std::vector<std::string> lines = lines_of(text);
  ASSERT_EQ(lines.size(), 17u);
  for (const std::string& line : lines) EXPECT_EQ(viz::display_width(line), 80);
}

// ---- pictures of JAX's notebooks, byte for byte ----

TEST_F(VisualizeTest, html_equals_the_notebook_pictures) {
  const Shape shape{16, 16};
  Mesh cube = abstract_mesh({2, 2, 2}, {"x", "y", "z"});
  Mesh even(NdDevices{{0, 2}, {4, 6}}, {"x", "y"});
  EXPECT_EQ(sharding_html(shape, over({8}, {"x"}, P(None, "x"))), read_golden("row_of_8.html"));
  EXPECT_EQ(sharding_html(shape, over({2, 4}, {"x", "y"}, P("x", "y"))), read_golden("mesh_2x4.html"));
  EXPECT_EQ(sharding_html(shape, over({2, 4}, {"x", "y"}, P("y", "x"))),
            read_golden("mesh_2x4_transposed.html"));
  EXPECT_EQ(sharding_html(shape, NamedSharding(even, P("x", "y"))),
            read_golden("mesh_2x2_of_even_devices.html"));
  EXPECT_EQ(sharding_html(shape, NamedSharding(cube, P(axes("z", "x"), "y"))),
            read_golden("mesh_2x2x2_mixed_axes.html"));
}

TEST_F(VisualizeTest, html_escapes_nothing_that_it_should_not_and_everything_that_it_should) {
  std::string html = sharding_html({4, 4, 4}, over({2, 2, 2}, {"a", "b", "c"}, P("a", "b", "c")));
  EXPECT_THAT(html, HasSubstr("[0:2, :, :]\n<span"));
  EXPECT_THAT(html, Not(HasSubstr("&lt;span")));
}

// ---- colour ----

TEST_F(VisualizeTest, a_colour_terminal_gets_coloured_areas) {
  VisualizeOptions options;
  options.is_terminal = true;
  std::string text = visualize_sharding({4}, over({4}, {"x"}, P("x")), options);
  const std::string navy = "\x1b[38;2;255;255;255;48;2;57;59;121m",
                    pink = "\x1b[38;2;255;255;255;48;2;222;158;214m";
  std::string row = lines_of(text).at(0);
  EXPECT_EQ(row.substr(0, row.find("CPU 1")),
            navy + "  \x1b[0m" + navy + "CPU 0\x1b[0m" + navy + "  \x1b[0m" + pink + "  \x1b[0m" + pink);
  EXPECT_EQ(without_colours(text), "  CPU 0    CPU 1    CPU 2    CPU 3  \n" + std::string(36, ' ') + "\n");
}

TEST_F(VisualizeTest, colour_gives_way_to_boxes_when_it_is_off_or_there_is_no_terminal) {
  Sharding sharding = over({4}, {"x"}, P("x"));
  VisualizeOptions options;
  options.is_terminal = false;
  EXPECT_EQ(visualize_sharding({4}, sharding, options), framed({4}, sharding));
  options.is_terminal = true;
  options.use_color = false;
  EXPECT_EQ(visualize_sharding({4}, sharding, options), framed({4}, sharding));
}

TEST_F(VisualizeTest, neighbours_never_share_a_colour) {
  for (int rows = 1; rows <= 12; ++rows) {
    for (int columns = 1; columns <= 7; ++columns) {
      std::string html =
          sharding_html({rows * 10, columns * 10}, over({rows, columns}, {"x", "y"}, P("x", "y")));
      std::vector<std::vector<std::string>> colours;
      for (const std::string& line : lines_of(html)) {
        if (line.find("CPU") == std::string::npos) continue;
        std::vector<std::string>& row = colours.emplace_back();
        const std::string key = "background-color: ";
        for (std::size_t at = line.find(key); at != std::string::npos; at = line.find(key, at + 1))
          row.push_back(line.substr(at + key.size(), 7));
      }
      ASSERT_EQ(colours.size(), static_cast<std::size_t>(rows));
      for (int r = 0; r < rows; ++r) {
        // Equal neighbours would have been merged into one span.
        ASSERT_EQ(colours[r].size(), static_cast<std::size_t>(columns)) << rows << " x " << columns;
        for (int c = 0; r > 0 && c < columns; ++c)
          EXPECT_NE(colours[r][c], colours[r - 1][c]) << rows << " x " << columns;
      }
    }
  }
}

// ---- beyond JAX ----

TEST_F(VisualizeTest, uneven_blocks_are_drawn_in_proportion_with_their_sizes) {
  EXPECT_EQ(framed({10}, over({4}, {"x"}, P("x"))),
            "┌───────────────┬───────────────┬───────────────┬─────┐\n"
            "│     CPU 0     │     CPU 1     │     CPU 2     │CPU 3│\n"
            "│     (3,)      │     (3,)      │     (3,)      │(1,) │\n"
            "└───────────────┴───────────────┴───────────────┴─────┘\n");
}

TEST_F(VisualizeTest, empty_blocks_say_so) {
  EXPECT_EQ(framed({5}, over({4}, {"x"}, P("x"))),
            "┌────────┬───────┬─────┬─────┐\n"
            "│ CPU 0  │ CPU 1 │CPU 2│CPU 3│\n"
            "│  (2,)  │ (2,)  │(1,) │empty│\n"
            "└────────┴───────┴─────┴─────┘\n");
  EXPECT_THAT(framed({0, 4}, over({2, 2}, {"x", "y"}, P("x", "y"))), HasSubstr("│  empty   │  empty   │"));
}

TEST_F(VisualizeTest, a_scalar_is_one_cell) {
  EXPECT_EQ(framed(Shape{}, over({2, 2}, {"x", "y"}, P())),
            "Shape (): one element, on every device\n"
            "┌───────────────────────┐\n"
            "│      CPU 0,1,2,3      │\n"
            "└───────────────────────┘\n");
}

TEST_F(VisualizeTest, of_three_dimensions_the_two_that_are_cut_are_drawn) {
  EXPECT_EQ(framed({8, 6, 4}, over({4, 2}, {"x", "y"}, P("x", None, "y"))),
            "Shape (8, 6, 4): down dim 0 (8 in 4 blocks), across dim 2 (4 in 2 blocks); dim 1\n"
            "(6) is whole\n"
            "┌───────┬───────┐\n"
            "│ CPU 0 │ CPU 1 │\n"
            "├───────┼───────┤\n"
            "│ CPU 2 │ CPU 3 │\n"
            "├───────┼───────┤\n"
            "│ CPU 4 │ CPU 5 │\n"
            "├───────┼───────┤\n"
            "│ CPU 6 │ CPU 7 │\n"
            "└───────┴───────┘\n");
}

TEST_F(VisualizeTest, a_third_cut_dimension_makes_a_panel_per_block) {
  VisualizeOptions low;
  low.scale = 0.2;
  EXPECT_EQ(framed({8, 6, 4}, over({2, 2, 2}, {"x", "y", "z"}, P("x", "y", "z")), low),
            "Shape (8, 6, 4): down dim 1 (6 in 2 blocks), across dim 2 (4 in 2 blocks); a\n"
            "panel per block of dim 0 (8 in 2 blocks)\n"
            "[0:4, :, :]\n"
            "┌───────┬───────┐\n"
            "│ CPU 0 │ CPU 1 │\n"
            "├───────┼───────┤\n"
            "│ CPU 2 │ CPU 3 │\n"
            "└───────┴───────┘\n"
            "[4:8, :, :]\n"
            "┌───────┬───────┐\n"
            "│ CPU 4 │ CPU 5 │\n"
            "├───────┼───────┤\n"
            "│ CPU 6 │ CPU 7 │\n"
            "└───────┴───────┘\n");
}

TEST_F(VisualizeTest, what_is_too_wide_gives_up_padding_first) {
  std::string text =
      framed({10, 10}, over({10}, {"x"}, P(None, "x")));  // 10 columns of 7 and 11 lines are 81 characters
  EXPECT_THAT(text, HasSubstr("│CPU 0 │CPU 1 │CPU 2 │CPU 3 │CPU 4 │CPU 5 │CPU 6 │CPU 7 │CPU 8 │CPU 9 │\n"));
}

TEST_F(VisualizeTest, then_it_continues_below_with_every_label_whole) {
  EXPECT_EQ(framed({64}, over({16}, {"x"}, P("x"))),
            "[0:32]\n"
            "┌────────┬────────┬────────┬────────┬────────┬────────┬────────┬────────┐\n"
            "│ CPU 0  │ CPU 1  │ CPU 2  │ CPU 3  │ CPU 4  │ CPU 5  │ CPU 6  │ CPU 7  │\n"
            "└────────┴────────┴────────┴────────┴────────┴────────┴────────┴────────┘\n"
            "[32:64]\n"
            "┌────────┬────────┬────────┬────────┬────────┬────────┬────────┬────────┐\n"
            "│ CPU 8  │ CPU 9  │ CPU 10 │ CPU 11 │ CPU 12 │ CPU 13 │ CPU 14 │ CPU 15 │\n"
            "└────────┴────────┴────────┴────────┴────────┴────────┴────────┴────────┘\n");
}

TEST_F(VisualizeTest, many_replicas_become_ranges_with_an_explanation) {
  std::string text = framed({8, 8}, over({32, 2}, {"x", "y"}, P("y")));
  EXPECT_THAT(text, HasSubstr("│      CPU 0-62:2       │"));
  EXPECT_THAT(text, HasSubstr("│      CPU 1-63:2       │"));
  EXPECT_EQ(lines_of(text).back(), "a-b names all devices from a to b, a-b:s every s-th");
}

TEST_F(VisualizeTest, thousands_of_blocks_show_the_first_and_last_and_count_the_rest) {
  const auto start = std::chrono::steady_clock::now();
  std::string text = framed({10000, 10000}, over({100, 100}, {"x", "y"}, P("x", "y")));
  EXPECT_THAT(text, HasSubstr("│ CPU 0  │ CPU 1  │ CPU 2  │ CPU 3  │ CPU 4  │ ⋯ │CPU 98  │CPU 99  │"));
  EXPECT_THAT(text, HasSubstr("│CPU 9900│CPU 9901│CPU 9902│CPU 9903│CPU 9904│ ⋯ │CPU 9998│CPU 9999│"));
  EXPECT_THAT(text, HasSubstr("105 of 10000 blocks shown; left out: blocks 10-94 of 100 along dim 0, "
                              "blocks\n5-97 of 100 along dim 1\n"));
  EXPECT_LT(lines_of(text).size(), 40u);
  EXPECT_THAT(framed({8, 8}, over({10000}, {"x"}, P())), HasSubstr("CPU 0-9999"));
  EXPECT_LT(lines_of(framed({99, 99, 99}, over({20, 20, 20}, {"x", "y", "z"}, P("x", "y", "z")))).size(),
            120u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST_F(VisualizeTest, a_positional_sharding_is_drawn_like_a_named_one) {
  PositionalSharding positions(NdDevices{{3, 2}, {1, 0}});
  VisualizeOptions low;
  low.scale = 0.2;
  EXPECT_EQ(framed({8, 8}, positions.replicate(0), low),
            "┌───────┬───────┐\n"
            "│CPU 1,3│CPU 0,2│\n"
            "└───────┴───────┘\n");
}

// ---- properties of random pictures ----

TEST_F(VisualizeTest, no_picture_loses_a_label_or_leaves_its_width) {
  std::mt19937 random(7);
  for (int round = 0; round < 600; ++round) {
    Subject subject = random_subject(random);
    VisualizeOptions options;
    options.max_width = round % 3 == 0 ? 40 : 80;
    SCOPED_TRACE(to_string(subject.shape) + " " + viz::text_of(subject.sharding));
    std::string boxes = framed(subject.shape, subject.sharding, options);
    options.is_terminal = true;
    std::string areas = without_colours(visualize_sharding(subject.shape, subject.sharding, options));
    const auto blocks = blocks_of(subject);
    bool is_uneven = false;
    for (const auto& [ids, shape] : blocks)
      is_uneven |= !(shape == subject.sharding.shard_shape(subject.shape));
    for (const std::string& text : {boxes, areas}) {
      for (const auto& [ids, shape] : blocks) {
        EXPECT_TRUE(names(text, ids)) << viz::full_label(ids) << "\n" << text;
        if (is_uneven) {
          EXPECT_THAT(text, HasSubstr(to_string(shape)));
        }
      }
      for (const std::string& line : lines_of(text))
        EXPECT_LE(viz::display_width(line), options.max_width) << line;
    }
    // Each table is a rectangle.
    int width = 0;
    for (const std::string& line : lines_of(boxes)) {
      if (line.starts_with("┌")) width = viz::display_width(line);
      if (line.starts_with("│") || line.starts_with("├") || line.starts_with("└")) {
        EXPECT_EQ(viz::display_width(line), width);
      }
    }
    if (::testing::Test::HasFailure()) break;
  }
}

// ---- bad input ----

TEST_F(VisualizeTest, bad_options_and_shardings_that_do_not_fit_are_refused) {
  Sharding sharding = over({2, 2}, {"x", "y"}, P("x", "y"));
  auto with = [&](auto change) {
    return error_of<ArgumentError>([&] {
      VisualizeOptions options;
      change(options);
      visualize_sharding({4, 4}, sharding, options);
    });
  };
  EXPECT_THAT(with([](auto& o) { o.scale = 0; }), HasSubstr("scale must lie above 0"));
  EXPECT_THAT(with([](auto& o) { o.scale = std::nan(""); }), HasSubstr("scale must lie above 0"));
  EXPECT_THAT(with([](auto& o) { o.min_width = 0; }), HasSubstr("min_width must be at least 1, got 0"));
  EXPECT_THAT(with([](auto& o) { o.max_width = 19; }),
              HasSubstr("max_width must lie between 20 and 10000, got 19"));
  EXPECT_THAT(error_of<ShardingError>([&] { visualize_sharding({4}, sharding); }),
              HasSubstr("visualize_sharding"));
  EXPECT_THAT(error_of<ShardingError>([&] { sharding_html({4}, sharding); }), HasSubstr("sharding_html"));
  EXPECT_THAT(error_of<ShardingError>([&] { sharding_svg({4}, sharding); }), HasSubstr("sharding_svg"));
}

}  // namespace
}  // namespace tessera::debug
