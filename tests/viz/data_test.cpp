// Pictures of data: colours, pixels, axes, characters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include <tessera/error.hpp>

#include <cmath>

#include "viz/data/chart.hpp"
#include "viz/data/drawings.hpp"
#include "viz/data/png.hpp"

namespace tessera::viz {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}
std::vector<std::string> labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> texts;
  for (const auto& tick : ticks) texts.push_back(tick.label);
  return texts;
}
// RGBA, row by row.
std::vector<png_byte> pixels_of(const std::string& file, unsigned& width, unsigned& height) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  EXPECT_NE(png_image_begin_read_from_memory(&image, file.data(), file.size()), 0);
  image.format = PNG_FORMAT_RGBA;
  width = image.width, height = image.height;
  std::vector<png_byte> pixels(PNG_IMAGE_SIZE(image));
  EXPECT_NE(png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr), 0);
  return pixels;
}

TEST(colormap, begins_and_ends_with_its_colours) {
  EXPECT_EQ(Colormap("viridis").at(0), (Rgb{0x44, 0x01, 0x54}));
  EXPECT_EQ(Colormap("viridis").at(1), (Rgb{0xfd, 0xe7, 0x25}));
  EXPECT_EQ(Colormap("gray").at(0.5), (Rgb{128, 128, 128}));
}
TEST(colormap, that_is_unknown_is_refused_with_the_names) {
  try {
    const Colormap map("viridi");
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("no colormap 'viridi'"), HasSubstr("did you mean 'viridis'?"),
                                    HasSubstr("coolwarm, gray, inferno, magma, plasma, viridis")));
  }
}

TEST(png, has_a_pixel_per_number) {
  unsigned width = 0, height = 0;
  const auto pixels =
      pixels_of(png_of({2, 3, {0, 1, 2, 3, nan, 5}}, {0, 5}, Colormap("gray"), 1), width, height);
  EXPECT_EQ(width, 3U);
  EXPECT_EQ(height, 2U);
  EXPECT_THAT(std::vector<png_byte>(pixels.begin(), pixels.begin() + 8),
              ElementsAre(0, 0, 0, 255, 51, 51, 51, 255));
  EXPECT_EQ(pixels[4 * 4 + 3], 0) << "NaN is transparent";
  EXPECT_EQ(pixels[5 * 4], 255);
}
TEST(png, enlarges_pixels) {
  unsigned width = 0, height = 0;
  const auto pixels = pixels_of(png_of({1, 2, {0, 1}}, {0, 1}, Colormap("gray"), 3), width, height);
  EXPECT_EQ(width, 6U);
  EXPECT_EQ(height, 3U);
  EXPECT_EQ(pixels[4 * 2], 0);
  EXPECT_EQ(pixels[4 * 3], 255);
}

TEST(axes, have_round_numbers) {
  EXPECT_THAT(labels(ticks_of({0, 10, false, 0, 500}, 6)), ElementsAre("0", "2", "4", "6", "8", "10"));
  EXPECT_THAT(labels(ticks_of({-0.13, 0.31, false, 0, 500}, 6)),
              ElementsAre("-0.1", "0.0", "0.1", "0.2", "0.3"));
  EXPECT_THAT(labels(ticks_of({1e-3, 1e2, true, 0, 500}, 8)),
              ElementsAre("0.001", "0.01", "0.1", "1", "10", "100"));
  EXPECT_THAT(labels(ticks_of({1.5, 8, true, 0, 500}, 8)), ElementsAre("2", "5"));
}
// Labels must not touch, for any numbers and any width.
TEST(axes, have_labels_that_keep_clear_of_each_other) {
  for (const double low : {0.0, -1.0, 1e-7, 123456.0, -98765.4, 1e20})
    for (const double span : {1e-6, 0.37, 1.0, 999.0, 3e9})
      for (const double pixels : {20.0, 80.0, 300.0, 900.0}) {
        const Axis axis{low, low + span, false, 0, pixels};
        const auto ticks = ticks_that_fit(axis, true);
        ASSERT_FALSE(ticks.empty()) << low << " " << span;
        for (std::size_t i = 1; i < ticks.size(); ++i) {
          const double right = axis.pixel(ticks[i - 1].value) + svg_text_width(ticks[i - 1].label, 11) / 2.0,
                       left = axis.pixel(ticks[i].value) - svg_text_width(ticks[i].label, 11) / 2.0;
          EXPECT_LT(right, left) << low << " + " << span << " on " << pixels;
        }
      }
}
TEST(axes, may_count_downwards) {
  EXPECT_THAT(labels(ticks_of({8, 0, false, 0, 500}, 6)), ElementsAre("0", "2", "4", "6", "8"));
}
TEST(axes, leave_room_for_the_widest_label) {
  const Chart narrow({"", "", "", 400, 300}, {0, 1}, {0, 1}), wide({"", "", "", 400, 300}, {0, 1}, {0, 1e9});
  EXPECT_GT(wide.x().from, narrow.x().from + 10);
}

TEST(plot, draws_a_line_per_run_of_numbers) {
  const std::string svg = plot_svg({{"a", {{0, 1}, {1, 2}, {2, nan}, {3, 4}}}, {"b", {{0, 0}, {3, 1}}}}, {});
  EXPECT_EQ(count_of(svg, "<polyline"), 3U);
  EXPECT_THAT(svg, AllOf(HasSubstr(">a</text>"), HasSubstr(">b</text>")));
}
TEST(plot, leaves_out_what_has_no_logarithm) {
  PlotOptions options;
  options.log_y = true;
  EXPECT_EQ(count_of(plot_svg({{"", {{0, 1}, {1, 0}, {2, 100}}}}, options), "<polyline"), 2U);
}
TEST(plot, of_nothing_or_of_one_value_has_axes) {
  EXPECT_THAT(plot_svg({{"", {{0, nan}}}}, {}), Not(HasSubstr("nan")));
  EXPECT_THAT(plot_svg({{"", {{0, 5}, {1, 5}}}}, {}), Not(HasSubstr("nan")));
}
TEST(plot, escapes_what_the_user_writes) {
  PlotOptions options;
  options.title = "a < b & c";
  EXPECT_THAT(plot_svg({{"", {{0, 1}}}}, options), HasSubstr("a &lt; b &amp; c"));
}
TEST(histogram, has_a_bar_per_bin_that_is_not_empty) {
  const auto svg = histogram_svg({3, 0, 5}, {0, 3}, {});
  EXPECT_EQ(count_of(svg, "fill=\"#1f77b4\""), 2U);
}
TEST(image, in_svg_holds_pixels_and_a_scale_of_colours) {
  const auto svg = image_svg({2, 2, {0, 1, 2, 3}}, {0, 3}, {}, 200, 200);
  EXPECT_EQ(count_of(svg, "data:image/png;base64,iVBORw0KGgo"), 2U);
  EXPECT_THAT(svg, AllOf(HasSubstr(">0</text>"), HasSubstr(">200</text>"), HasSubstr(">3.0</text>")));
}

TEST(terminal, shades_numbers) {
  EXPECT_EQ(shaded_text({2, 3, {0, 1, 2, 3, 4, nan}}, {0, 4}, "gray", false), "  ░░▒▒\n▓▓██??");
}
TEST(terminal, puts_two_rows_of_colours_into_a_line) {
  const auto text = shaded_text({2, 1, {0, 1}}, {0, 1}, "gray", true);
  EXPECT_EQ(text, "\x1b[0m\x1b[38;2;0;0;0m\x1b[48;2;255;255;255m▀\x1b[0m");
}
TEST(terminal, draws_a_curve_as_bars) {
  EXPECT_EQ(bars_text({0, 1, 2, 3, 4}, {0, 4}, 1), " ▂▄▆█");
  EXPECT_EQ(bars_text({0, 2, 4}, {0, 4}, 2), "  █\n ██");
}

}  // namespace
}  // namespace tessera::viz
