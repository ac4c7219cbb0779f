#include "viz/data/drawings.hpp"

#include <algorithm>
#include <cmath>

#include "viz/data/chart.hpp"
#include "viz/data/png.hpp"

namespace tessera::viz {
namespace {

std::string base64(const std::string& bytes) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned word = 0;
    for (std::size_t k = 0; k < 3; ++k)
      word = word << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k > bytes.size() ? '=' : digits[word >> (18 - 6 * k) & 63];
  }
  return text;
}
std::string image_element(double x, double y, double width, double height, const std::string& png) {
  const auto number = [](double v) { return std::to_string(static_cast<int>(std::lround(v))); };
  return "<image x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(width) + "\" height=\"" +
         number(height) +
         "\" preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" href=\"data:image/png;base64," +
         base64(png) + "\"/>\n";
}

// An axis over [low, high]; a default range if there are no numbers, widened around a single one.
Axis axis_over(double low, double high, bool logarithmic) {
  Axis axis{low, high, logarithmic};
  if (!(low <= high)) axis.low = logarithmic ? 0.1 : 0, axis.high = 1;
  if (axis.low == axis.high) {
    axis.low = logarithmic ? low / 2 : low - (low == 0 ? 1 : std::fabs(low) / 2);
    axis.high = logarithmic ? low * 2 : low + (low == 0 ? 1 : std::fabs(low) / 2);
  }
  return axis;
}
void widen(Axis& axis) {
  const double part = 0.04;
  if (axis.logarithmic) {
    const double factor = std::pow(axis.high / axis.low, part);
    axis.low /= factor, axis.high *= factor;
  } else {
    const double margin = part * (axis.high - axis.low);
    axis.low -= margin, axis.high += margin;
  }
}

bool is_drawn(const std::pair<double, double>& p, const PlotOptions& options) {
  return std::isfinite(p.first) && std::isfinite(p.second) && (!options.log_x || p.first > 0) &&
         (!options.log_y || p.second > 0);
}

ChartFrame frame_of(const PlotOptions& options) {
  return {options.title, options.x_label, options.y_label, options.width, options.height};
}

}  // namespace

std::string image_svg(const DataGrid& grid, const ValueRange& range, const ImageOptions& options,
                      std::int64_t rows, std::int64_t columns) {
  constexpr double longest = 480, bar_width = 16;
  const double scale = longest / static_cast<double>(std::max(rows, columns));
  const double width = std::max(40.0, static_cast<double>(columns) * scale),
               height = std::max(40.0, static_cast<double>(rows) * scale);
  const Axis colours{range.low, range.high, false, 0, height};
  const auto ticks = ticks_that_fit(colours, false);
  double widest = 0;
  for (const auto& tick : ticks) widest = std::max<double>(widest, svg_text_width(tick.label, 11));
  const double right = bar_width + 24 + widest;
  // The chart takes its margins from the frame, so the frame is enlarged by them.
  const Axis x{0, static_cast<double>(columns)}, y{static_cast<double>(rows), 0};
  ChartFrame frame{options.title, options.x_label, options.y_label, 0, 0};
  frame.width = static_cast<int>(width + right), frame.height = static_cast<int>(height);
  const Chart measured({frame.title, frame.x_label, frame.y_label, 2 * frame.width, 2 * frame.height}, x, y,
                       right);
  frame.width = static_cast<int>(width + 2.0 * frame.width - (measured.x().to - measured.x().from));
  frame.height = static_cast<int>(height + 2.0 * frame.height - (measured.y().from - measured.y().to));
  Chart chart(frame, x, y, right);
  const Colormap colormap(options.colormap);
  const double left = chart.x().from, top = chart.y().to, w = chart.x().to - left, h = chart.y().from - top;
  chart.svg().raw(image_element(left, top, w, h, png_of(grid, range, colormap, 1)));
  DataGrid bar{256, 1, {}};
  for (int i = 0; i < 256; ++i) bar.values.push_back(range.high + (range.low - range.high) * i / 255);
  const double at = chart.x().to + 12;
  chart.svg().raw(image_element(at, top, bar_width, h, png_of(bar, range, colormap, 1)));
  for (const auto& tick : ticks) {
    const double level = top + h - h * range.place(tick.value);
    chart.svg().rect(at + bar_width, level, 4, 1, "fill=\"#888888\"");
    chart.svg().text(at + bar_width + 8, level + 4, tick.label, "font-size=\"11\"");
  }
  return chart.document();
}

std::string plot_svg(const std::vector<DrawnCurve>& curves, const PlotOptions& options) {
  const double inf = std::numeric_limits<double>::infinity();
  double low_x = inf, high_x = -inf, low_y = inf, high_y = -inf;
  for (const auto& curve : curves)
    for (const auto& p : curve.points)
      if (is_drawn(p, options)) {
        low_x = std::min(low_x, p.first), high_x = std::max(high_x, p.first);
        low_y = std::min(low_y, p.second), high_y = std::max(high_y, p.second);
      }
  Axis x = axis_over(low_x, high_x, options.log_x), y = axis_over(low_y, high_y, options.log_y);
  widen(x), widen(y);
  Chart chart(frame_of(options), x, y);
  Points drawn;
  std::vector<LegendEntry> entries;
  for (std::size_t c = 0; c < curves.size(); ++c) {
    const auto colour = curve_colour(c);
    Points run;
    const auto end_run = [&] {
      if (!run.empty()) chart.svg().polyline(run, colour);
      run.clear();
    };
    for (const auto& p : curves[c].points) {
      if (!is_drawn(p, options)) {
        end_run();
        continue;
      }
      run.emplace_back(chart.x().pixel(p.first), chart.y().pixel(p.second));
      drawn.push_back(run.back());
    }
    end_run();
    if (!curves[c].label.empty()) entries.push_back({curves[c].label, colour});
  }
  chart.legend(entries, drawn);
  return chart.document();
}

std::string histogram_svg(const std::vector<std::int64_t>& counts, const ValueRange& range,
                          const PlotOptions& options) {
  const auto most = std::max<std::int64_t>(1, *std::max_element(counts.begin(), counts.end()));
  Axis x = axis_over(range.low, range.high, false), y{0, static_cast<double>(most) * 1.05};
  widen(x);
  Chart chart(frame_of(options), x, y);
  const double bin = (range.high - range.low) / static_cast<double>(counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double left = chart.x().pixel(range.low + bin * static_cast<double>(i)),
                 right = chart.x().pixel(range.low + bin * static_cast<double>(i + 1)),
                 top = chart.y().pixel(static_cast<double>(counts[i]));
    if (counts[i] > 0)
      chart.svg().rect(left, top, std::max(0.5, right - left - 1), chart.y().from - top,
                       "fill=\"" + curve_colour(0) + "\"");
  }
  return chart.document();
}

namespace {

std::string colour_code(const Rgb& c, int layer) {
  return "\x1b[" + std::to_string(layer) + ";2;" + std::to_string(c.r) + ";" + std::to_string(c.g) + ";" +
         std::to_string(c.b) + "m";
}

std::string coloured_text(const DataGrid& grid, const ValueRange& range, const Colormap& colours) {
  std::string text;
  for (std::int64_t row = 0; row < grid.rows; row += 2) {
    for (std::int64_t column = 0; column < grid.columns; ++column) {
      const double upper = grid.at(row, column);
      const double lower = row + 1 < grid.rows ? grid.at(row + 1, column) : std::nan("");
      std::string codes = "\x1b[0m";
      if (!std::isnan(upper)) codes += colour_code(colours.at(range.place(upper)), 38);
      if (!std::isnan(lower))
        codes += colour_code(colours.at(range.place(lower)), std::isnan(upper) ? 38 : 48);
      text += codes + (!std::isnan(upper) ? "▀" : !std::isnan(lower) ? "▄" : " ");
    }
    text += "\x1b[0m\n";
  }
  return text;
}

}  // namespace

std::string shaded_text(const DataGrid& grid, const ValueRange& range, const std::string& colormap,
                        bool colour) {
  const Colormap colours(colormap);
  std::string text;
  if (colour) {
    text = coloured_text(grid, range, colours);
  } else {
    static const char* const shades[] = {"  ", "░░", "▒▒", "▓▓", "██"};
    for (std::int64_t row = 0; row < grid.rows; ++row) {
      for (std::int64_t column = 0; column < grid.columns; ++column) {
        const double value = grid.at(row, column);
        text += std::isnan(value) ? "??" : shades[std::min(4, static_cast<int>(range.place(value) * 5))];
      }
      text += "\n";
    }
  }
  if (!text.empty()) text.pop_back();
  return text;
}

std::string bars_text(const std::vector<double>& values, const ValueRange& range, int lines) {
  static const char* const eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string text;
  for (int line = lines - 1; line >= 0; --line) {
    for (const double value : values) {
      const int height =
          std::isnan(value) ? 0 : static_cast<int>(std::lround(range.place(value) * 8 * lines));
      text += eighths[std::clamp(height - 8 * line, 0, 8)];
    }
    if (line > 0) text += "\n";
  }
  return text;
}

}  // namespace tessera::viz
