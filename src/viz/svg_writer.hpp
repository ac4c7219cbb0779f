// An SVG document that grows with its contents.
#pragma once
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace tessera::viz {

// All text is monospaced, so that its width is known here: 0.61 em covers DejaVu Sans Mono, Menlo and
// Courier.
inline constexpr int svg_font_size = 12, svg_margin = 24;
inline constexpr double svg_em = 0.61;
int svg_text_width(const std::string& text, int font_size = svg_font_size);

class SvgWriter {
 public:
  void text(double x, double y, const std::string& content, const std::string& attributes = "");
  void rect(double x, double y, double width, double height, const std::string& attributes);
  void line(double x1, double y1, double x2, double y2);
  void polyline(const std::vector<std::pair<double, double>>& points, const std::string& colour);
  void raw(const std::string& element) { body_ << element; }
  void reach(double x, double y);  // the document includes this point and a margin
  double width() const { return width_; }
  std::string document(const std::string& title) const;

 private:
  std::ostringstream body_;
  double width_ = 0, height_ = 0;
};

}  // namespace tessera::viz
