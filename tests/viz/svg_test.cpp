#include "pictures.hpp"

#include <cstdlib>
#include <set>

#include "viz/svg_writer.hpp"

namespace tessera::debug {
namespace {

using ::testing::HasSubstr;

struct Area {
  double left, top, right, bottom;
  std::string text;
  bool meets(const Area& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

double attribute(const std::string& tag, const std::string& name, double otherwise) {
  std::size_t at = tag.find(" " + name + "=\"");
  return at == std::string::npos ? otherwise : std::strtod(tag.c_str() + at + name.size() + 3, nullptr);
}

// The area of each text of the document, from its anchor, its length and the width of a monospaced letter.
std::vector<Area> texts_of(const std::string& svg) {
  std::vector<Area> areas;
  for (std::size_t at = svg.find("<text "); at != std::string::npos; at = svg.find("<text ", at + 1)) {
    std::size_t close = svg.find('>', at);
    std::string tag = svg.substr(at, close - at),
                content = svg.substr(close + 1, svg.find('<', close) - close - 1);
    double x = attribute(tag, "x", 0), y = attribute(tag, "y", 0),
           size = attribute(tag, "font-size", viz::svg_font_size);
    double length = viz::display_width(content) * size * 0.602, up = 0.76 * size, down = 0.2 * size;
    if (tag.find("rotate") != std::string::npos) {
      areas.push_back({x - up, y - length / 2, x + down, y + length / 2, content});
      continue;
    }
    double left = tag.find("\"middle\"") != std::string::npos ? x - length / 2
                  : tag.find("\"end\"") != std::string::npos  ? x - length
                                                              : x;
    areas.push_back({left, y - up, left + length, y + down, content});
  }
  return areas;
}

bool is_balanced(const std::string& svg) {
  std::vector<std::string> open;
  for (std::size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    std::size_t end = svg.find('>', at);
    if (end == std::string::npos) return false;
    std::string name = svg.substr(at + 1, svg.find_first_of(" >/\n", at + 2) - at - 1);
    if (svg[at + 1] == '/') {
      if (open.empty() || "/" + open.back() != svg.substr(at + 1, end - at - 1)) return false;
      open.pop_back();
    } else if (svg[end - 1] != '/') {
      open.push_back(name);
    }
  }
  return open.empty();
}

class SvgTest : public PictureTest {};

TEST_F(SvgTest, title_ticks_and_legend_say_what_is_held_where) {
  std::string svg = sharding_svg({16, 16}, over({2, 4}, {"x", "y"}, P("x", "y")));
  EXPECT_THAT(svg, HasSubstr(">Shape (16, 16)</text>"));
  EXPECT_THAT(svg, HasSubstr(">NamedSharding(Mesh('x': 2, 'y': 4), P('x', 'y'))</text>"));
  EXPECT_THAT(svg, HasSubstr(">CPU 3  [0:8, 12:16]  (8, 4)</text>"));
  EXPECT_THAT(svg, HasSubstr(">12</text>"));
  EXPECT_THAT(svg, HasSubstr("fill=\"#393b79\""));
}

TEST_F(SvgTest, a_replicated_array_is_on_all_devices) {
  const Sharding everywhere = over({4}, {"x"}, P());
  EXPECT_THAT(sharding_svg({16, 16}, everywhere), HasSubstr(">CPU 0,1,2,3  [0:16, 0:16]  (16, 16)</text>"));
  for (const auto& shown : {sharding_svg({16, 16}, everywhere), sharding_html({16, 16}, everywhere),
                            framed({16, 16}, everywhere)}) {
    EXPECT_THAT(shown, HasSubstr("CPU 0,1,2,3"));
    EXPECT_THAT(shown, testing::Not(HasSubstr("one device")));
  }
}

TEST_F(SvgTest, blocks_have_the_proportions_of_the_array) {
  std::string svg = sharding_svg({10, 7}, over({4, 2}, {"x", "y"}, P("x", "y")));
  std::vector<double> widths, heights;
  for (std::size_t at = svg.find("<rect x"); at != std::string::npos; at = svg.find("<rect x", at + 1)) {
    std::string tag = svg.substr(at, svg.find('>', at) - at);
    if (tag.find("stroke-width") == std::string::npos) continue;  // a swatch
    widths.push_back(attribute(tag, "width", 0));
    heights.push_back(attribute(tag, "height", 0));
  }
  ASSERT_EQ(widths.size(), 8u);
  EXPECT_NEAR(widths[0] / widths[1], 4.0 / 3, 0.02);
  EXPECT_EQ(widths[0], widths[6]);
  EXPECT_NEAR(heights[0], heights[2], 1);
  EXPECT_GT(heights[0] / heights[6], 2.5);  // 3 to 1, as closely as two lines of text allow
}

TEST_F(SvgTest, empty_blocks_are_outlines) {
  std::string svg = sharding_svg({5}, over({4}, {"x"}, P("x")));
  EXPECT_THAT(svg, HasSubstr("stroke-dasharray"));
  EXPECT_THAT(svg, HasSubstr(">CPU 3  [5:5]  empty</text>"));
}

TEST_F(SvgTest, markup_in_axis_names_is_escaped) {
  std::string svg = sharding_svg({4}, over({2}, {"a<b>&\"c"}, P("a<b>&\"c")));
  EXPECT_THAT(svg, HasSubstr("a&lt;b&gt;&amp;&quot;c"));
  EXPECT_TRUE(is_balanced(svg));
}

TEST_F(SvgTest, what_is_left_out_is_counted) {
  EXPECT_THAT(sharding_svg({10000}, over({10000}, {"x"}, P("x"))), HasSubstr("7 of 10000 blocks shown"));
}

TEST_F(SvgTest, no_text_meets_another_or_leaves_the_page_and_no_label_is_lost) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    Subject subject = random_subject(random);
    if (round == 0) subject = {{12'000'000'000'000}, over({12}, {"x"}, P("x"))};  // indices wider than blocks
    SCOPED_TRACE(to_string(subject.shape) + " " + viz::text_of(subject.sharding));
    std::string svg = sharding_svg(subject.shape, subject.sharding);
    ASSERT_TRUE(is_balanced(svg));
    const double width = attribute(svg, "width", 0), height = attribute(svg, "height", 0);
    std::vector<Area> texts = texts_of(svg);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const Area& text = texts[i];
      ASSERT_TRUE(text.left >= 0 && text.top >= 0 && text.right <= width && text.bottom <= height)
          << text.text;
      for (std::size_t k = 0; k < i; ++k)
        ASSERT_FALSE(text.meets(texts[k])) << text.text << " and " << texts[k].text;
    }
    std::string written;  // the lines of a label are consecutive
    for (const Area& text : texts) written += text.text;
    for (const auto& [ids, shape] : blocks_of(subject))
      ASSERT_TRUE(names(written, ids)) << viz::full_label(ids);
  }
}

}  // namespace
}  // namespace tessera::debug
