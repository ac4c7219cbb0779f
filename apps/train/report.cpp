#include "report.hpp"

#include <tessera/error.hpp>
#include <tessera/multihost.hpp>
#include <tessera/runtime.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace train {

namespace {

constexpr double left = 64, right = 20, panel_width = 560, panel_height = 190, top = 44, gap = 46;

struct Scale {
  double low, high;
  bool logarithmic;
  double place(double value) const {  // 0 at the bottom, 1 at the top
    if (logarithmic)
      return (std::log10(std::max(value, low)) - std::log10(low)) / (std::log10(high) - std::log10(low));
    return (value - low) / (high - low);
  }
};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

void draw_axes(std::ostringstream& svg, double y, const Scale& scale, const std::vector<double>& ticks,
               std::size_t epochs, const char* label) {
  for (const double tick : ticks) {
    const double at = y + panel_height * (1 - scale.place(tick));
    svg << "<line x1='" << left << "' x2='" << left + panel_width << "' y1='" << at << "' y2='" << at
        << "' class='grid'/><text x='" << left - 8 << "' y='" << at + 4 << "' text-anchor='end'>"
        << number(tick) << "</text>\n";
  }
  const std::size_t stride = std::max<std::size_t>(1, (epochs + 4) / 6);
  for (std::size_t epoch = 1; epoch <= epochs; epoch += stride) {
    const double at = left + panel_width * static_cast<double>(epoch - 1) /
                                 std::max<double>(1, static_cast<double>(epochs) - 1);
    svg << "<text x='" << at << "' y='" << y + panel_height + 16 << "' text-anchor='middle'>"
        << (epoch == 1 ? "epoch " : "") << epoch << "</text>\n";
  }
  svg << "<rect x='" << left << "' y='" << y << "' width='" << panel_width << "' height='" << panel_height
      << "' class='frame'/><text x='" << left << "' y='" << y - 8 << "'>" << label << "</text>\n";
}

void draw_curve(std::ostringstream& svg, double y, const Scale& scale, const LossCurve& curve) {
  svg << "<polyline fill='none' stroke='" << curve.colour << "' stroke-width='2' points='";
  const double steps = std::max<double>(1, static_cast<double>(curve.values.size()) - 1);
  for (std::size_t i = 0; i < curve.values.size(); ++i)
    svg << left + panel_width * static_cast<double>(i) / steps << ","
        << y + panel_height * (1 - std::clamp(scale.place(curve.values[i]), 0.0, 1.0)) << " ";
  svg << "'/>\n";
}

}  // namespace

std::string training_plot(const std::string& title, const LossCurve& loss,
                          const std::vector<LossCurve>& shares) {
  std::ostringstream svg;
  const double second = top + panel_height + gap, height = second + panel_height + 40;
  svg << "<svg xmlns='http://www.w3.org/2000/svg' width='" << left + panel_width + right << "' height='"
      << height << "' font-family='sans-serif' font-size='12'>\n"
      << "<style>.grid{stroke:#ddd}.frame{fill:none;stroke:#888}</style><rect width='100%' height='100%' "
         "fill='white'/>\n<text x='"
      << left << "' y='18' font-size='14'>" << title << "</text>\n";
  const auto [low, high] = std::minmax_element(loss.values.begin(), loss.values.end());
  Scale scale{std::pow(10, std::floor(std::log10(std::max(*low, 1e-12)))),
              std::pow(10, std::ceil(std::log10(std::max(*high, 1e-11)))), true};
  if (scale.high <= scale.low) scale.high = 10 * scale.low;
  std::vector<double> ticks;
  for (double tick = scale.low; tick <= scale.high * 1.01; tick *= 10) ticks.push_back(tick);
  draw_axes(svg, top, scale, ticks, loss.values.size(), loss.name.c_str());
  draw_curve(svg, top, scale, loss);

  double least = 1;
  for (const auto& curve : shares)
    least = std::min(least, *std::min_element(curve.values.begin(), curve.values.end()));
  const Scale share{std::floor(least * 10) / 10, 1, false};
  ticks.clear();
  for (double tick = share.low; tick < 1.001; tick += share.low < 0.5 ? 0.2 : share.low < 0.9 ? 0.1 : 0.02)
    ticks.push_back(tick);
  draw_axes(svg, second, share, ticks, loss.values.size(), "");
  double at = left;
  for (const auto& curve : shares) {
    draw_curve(svg, second, share, curve);
    svg << "<text x='" << at << "' y='" << second - 8 << "' fill='" << curve.colour << "'>" << curve.name
        << "</text>\n";
    at += 14 + 7 * static_cast<double>(curve.name.size());
  }
  svg << "</svg>\n";
  return svg.str();
}

void write_file(const std::string& path, const std::string& content) {
  bool failed = false;
  if (tessera::is_main_process()) {
    std::ofstream file(path);
    file << content;
    file.close();
    failed = !file;
  }
  const auto verdict =
      tessera::multihost::broadcast_one_to_all(tessera::HostArray(std::vector<std::int32_t>{failed}, {1}));
  if (verdict.as<std::int32_t>()[0] != 0)
    throw tessera::IoError("train: rank 0 could not write " + path +
                           "; does its folder exist, and may it be written to?");
}

}  // namespace train
