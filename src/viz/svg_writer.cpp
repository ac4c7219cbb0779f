#include "viz/svg_writer.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "viz/canvas.hpp"
#include "viz/labels.hpp"

namespace tessera::viz {
namespace {

std::string number(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f", value);
  std::string digits = text;
  return digits.ends_with(".0") ? digits.substr(0, digits.size() - 2) : digits;
}

}  // namespace

int svg_text_width(const std::string& text, int font_size) {
  return static_cast<int>(std::ceil(display_width(text) * font_size * svg_em));
}

void SvgWriter::text(double x, double y, const std::string& content, const std::string& attributes) {
  body_ << "<text x=\"" << number(x) << "\" y=\"" << number(y) << "\"" << (attributes.empty() ? "" : " ")
        << attributes << ">" << escape_markup(content) << "</text>\n";
  reach(x, y);
}

void SvgWriter::rect(double x, double y, double width, double height, const std::string& attributes) {
  body_ << "<rect x=\"" << number(x) << "\" y=\"" << number(y) << "\" width=\"" << number(width)
        << "\" height=\"" << number(height) << "\" " << attributes << "/>\n";
  reach(x + width, y + height);
}

void SvgWriter::line(double x1, double y1, double x2, double y2) {
  body_ << "<line x1=\"" << number(x1) << "\" y1=\"" << number(y1) << "\" x2=\"" << number(x2) << "\" y2=\""
        << number(y2) << "\" stroke=\"#888888\"/>\n";
}

void SvgWriter::polyline(const std::vector<std::pair<double, double>>& points, const std::string& colour) {
  body_ << "<polyline fill=\"none\" stroke=\"" << colour << "\" stroke-width=\"1.5\" points=\"";
  for (const auto& [x, y] : points) body_ << number(x) << "," << number(y) << " ";
  body_ << "\"/>\n";
}

void SvgWriter::reach(double x, double y) {
  width_ = std::max(width_, x);
  height_ = std::max(height_, y);
}

std::string SvgWriter::document(const std::string& title) const {
  std::ostringstream svg;
  std::string width = number(std::ceil(width_ + svg_margin)),
              height = number(std::ceil(height_ + svg_margin));
  svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\"" << height
      << "\" viewBox=\"0 0 " << width << ' ' << height
      << "\" role=\"img\" font-family=\"'DejaVu Sans Mono', Menlo, Consolas, 'Courier New', monospace\" "
         "font-size=\""
      << svg_font_size << "\" fill=\"#222222\">\n<title>" << escape_markup(title) << "</title>\n"
      << "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      << body_.str() << "</svg>\n";
  return svg.str();
}

}  // namespace tessera::viz
