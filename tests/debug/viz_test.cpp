// viz: the data sent to rank 0, and the files that rank 0 writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include <tessera/tessera.hpp>

#include <cmath>
#include <fstream>
#include <sstream>

#include "io/folder.hpp"
#include "support/errors.hpp"
#include "viz/data/sampling.hpp"

namespace tessera::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Viz : public InFolder {};

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}
Mesh ranks() { return make_mesh({device_count()}, {"x"}); }
Array rows(const Array& x) { return device_put(x, ranks(), P("x")); }
Array columns(const Array& x) { return device_put(x, ranks(), P(None, "x")); }
Array table() { return arange(35.f).reshape(7, 5); }
TEST_F(Viz, a_small_array_arrives_whole_on_rank_0_alone) {
  for (const Array& x : {table(), rows(table()), columns(table())}) {
    const auto grid = viz::sampled(x, 100, 100);
    if (!is_main_process()) {
      EXPECT_TRUE(grid.values.empty());
      continue;
    }
    ASSERT_EQ(grid.values.size(), 35U);
    for (int i = 0; i < 35; ++i) EXPECT_EQ(grid.values[static_cast<std::size_t>(i)], i);
  }
}
TEST_F(Viz, a_large_array_is_averaged_where_it_lies) {
  const std::int64_t n = 240;
  const Array x = arange(static_cast<float>(n)).reshape(n, 1) + zeros({1, 120});
  for (const Array& split : {x, rows(x), columns(x)}) {
    const auto grid = viz::sampled(split, 4, 3);
    if (!is_main_process()) continue;
    ASSERT_EQ(grid.values.size(), 12U);
    for (int r = 0; r < 4; ++r)
      for (int c = 0; c < 3; ++c) EXPECT_DOUBLE_EQ(grid.at(r, c), 29.5 + 60 * r);
  }
}
TEST_F(Viz, only_the_pictures_numbers_travel) {
  const Array x = rows(ones({4096, 64}));
  eval(x);
  const debug::CommStats stats;
  viz::image(path("a.png"), x, {.max_pixels = 16});
  EXPECT_LE(stats.bytes(), 2 * 8 * 16 * 16 + device_count() * 2 * 8 * 16);
}
TEST_F(Viz, an_image_is_the_same_file_on_every_layout) {
  viz::image(path("a.png"), table());
  viz::image(path("b.png"), rows(table()));
  viz::image(path("c.png"), columns(astype(table(), int64)));
  multihost::sync_global_devices("written");
  const auto a = content(path("a.png"));
  EXPECT_THAT(a.substr(1, 3), "PNG");
  EXPECT_EQ(a, content(path("b.png")));
  EXPECT_EQ(a, content(path("c.png")));
}
TEST_F(Viz, a_peak_of_a_long_curve_is_not_lost) {
  Array y = zeros(100000);
  y = y.at(77777).set(1.f);
  viz::plot(path("peak.svg"), rows(y), {.title = "peak"});
  multihost::sync_global_devices("written");
  const auto flat = content(path("peak.svg"));
  EXPECT_THAT(flat, AllOf(HasSubstr(">peak</text>"), HasSubstr(">1.0</text>")));
}
TEST_F(Viz, curves_share_axes_and_a_legend) {
  const Array x = linspace(0, 1, 50);
  viz::plot(path("two.svg"),
            {{.y = rows(x * x), .label = "square", .x = rows(x)}, {.y = exp(x), .label = "exp", .x = x}},
            {.x_label = "x", .log_y = true});
  multihost::sync_global_devices("written");
  EXPECT_THAT(content(path("two.svg")),
              AllOf(HasSubstr(">square</text>"), HasSubstr(">exp</text>"), HasSubstr(">x</text>")));
}
TEST_F(Viz, a_histogram_counts_every_element_once) {
  const Array x = rows(array({0.f, 1.f, 1.f, 2.f, 2.f, 2.f, NAN, 4.f, INFINITY}));
  EXPECT_THAT(viz::counts_in_bins(x, {0, 4}, 4), ElementsAre(1, 2, 3, 1));
  EXPECT_THAT(viz::counts_in_bins(array({0.f, 1.f, 4.f}), {0, 4}, 2), ElementsAre(2, 1))
      << "uncommitted: once";
  const auto range = viz::finite_range(x);
  EXPECT_EQ(range->low, 0);
  EXPECT_EQ(range->high, 4);
  viz::histogram(path("h.svg"), x, {.bins = 4});
  multihost::sync_global_devices("written");
  EXPECT_THAT(content(path("h.svg")), HasSubstr("<svg"));
}
TEST_F(Viz, a_picture_in_characters_is_on_rank_0) {
  const auto text = viz::terminal(rows(table()), {.columns = 10, .rows = 7, .colour = false});
  EXPECT_EQ(text.empty(), !is_main_process());
  if (is_main_process()) {
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6);
  }
  EXPECT_EQ(viz::terminal(rows(array({0.f, 1.f, 2.f})), {.rows = 1}), is_main_process() ? " ▄█" : "");
}
TEST_F(Viz, refuses_on_every_rank_with_the_line) {
  const auto line = [](int n) { return HasSubstr("viz_test.cpp:" + std::to_string(n)); };
  EXPECT_THAT(test::error_of<ArgumentError>([&] { viz::image(path("a.jpg"), table()); }),
              AllOf(HasSubstr("must end in .png or .svg"), line(__LINE__ - 1)));
  EXPECT_THAT(test::error_of<ShapeError>([&] { viz::image(path("a.png"), arange(3)); }),
              HasSubstr("an image has two dimensions"));
  EXPECT_THAT(test::error_of<DtypeError>([&] { viz::image(path("a.png"), make_complex(table(), 1)); }),
              HasSubstr("complex numbers"));
  EXPECT_THAT(test::error_of<ArgumentError>([&] { viz::image(path("a.png"), table(), {.colormap = "jet"}); }),
              HasSubstr("there is no colormap 'jet'"));
  EXPECT_THAT(test::error_of<IoError>([&] { viz::image("/no/such/folder/a.png", rows(table())); }),
              HasSubstr("cannot be written"));
  EXPECT_THAT(
      test::error_of<ShapeError>([&] { viz::plot(path("a.svg"), {{.y = arange(3), .x = arange(4)}}); }),
      HasSubstr("has 3 values and 4 places"));
  EXPECT_THAT(test::error_of<ArgumentError>([&] {
                jit([&](const Array& x) {
                  viz::image(path("a.png"), x);
                  return x;
                })(table());
              }),
              HasSubstr("has no value while a function is traced"));
}

}  // namespace
}  // namespace tessera::test
