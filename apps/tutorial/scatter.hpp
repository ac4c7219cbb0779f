// Points and a fitted line as an SVG file.
#pragma once
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

namespace tutorial {

constexpr double plot_width = 480, plot_height = 320, plot_margin = 36;

/// Maps values to positions in the drawing.
struct PlotAxis {
  double low, high, from, to;
  PlotAxis(const std::vector<double>& values, double from_, double to_)
      : low(*std::min_element(values.begin(), values.end())),
        high(*std::max_element(values.begin(), values.end())),
        from(from_),
        to(to_) {}
  double operator()(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

/// Draws the points (xs, ys) and y = weight x + bias; false if the file cannot be written.
inline bool write_scatter(const std::string& path, const std::vector<double>& xs,
                          const std::vector<double>& ys, double weight, double bias) {
  const PlotAxis x(xs, plot_margin, plot_width - plot_margin), y(ys, plot_height - plot_margin, plot_margin);
  std::ofstream svg(path);
  svg.precision(5);
  svg << "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 " << plot_width << " " << plot_height
      << "' font-family='sans-serif' font-size='12'>\n<rect width='100%' height='100%' fill='white'/>\n"
      << "<rect x='" << plot_margin << "' y='" << plot_margin << "' width='" << plot_width - 2 * plot_margin
      << "' height='" << plot_height - 2 * plot_margin << "' fill='none' stroke='#888'/>\n";
  for (std::size_t i = 0; i < xs.size(); ++i)
    svg << "<circle cx='" << x(xs[i]) << "' cy='" << y(ys[i]) << "' r='2.5' fill='#1f77b4'/>\n";
  svg << "<line x1='" << x(x.low) << "' y1='" << y(weight * x.low + bias) << "' x2='" << x(x.high) << "' y2='"
      << y(weight * x.high + bias) << "' stroke='#d62728' stroke-width='2'/>\n"
      << "<text x='" << plot_margin + 8 << "' y='" << plot_margin + 18
      << "' fill='#d62728'>model: y = " << weight << " x + " << bias << "</text>\n"
      << "<text x='" << plot_margin << "' y='" << plot_height - 14 << "'>" << x.low << "</text>\n<text x='"
      << plot_width - plot_margin << "' y='" << plot_height - 14 << "' text-anchor='end'>" << x.high
      << "</text>\n<text x='4' y='" << plot_height - plot_margin << "'>" << y.low
      << "</text>\n<text x='4' y='" << plot_margin + 4 << "'>" << y.high << "</text>\n</svg>\n";
  return svg.good();
}

}  // namespace tutorial
