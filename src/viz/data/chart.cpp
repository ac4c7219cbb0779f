#include "viz/data/chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace tessera::viz {
namespace {

constexpr int label_size = 11;
constexpr double gap = 8;  // pixels between a tick's label and the axis, and between two labels

// A label with enough digits to distinguish neighbours `step` apart.
std::string label_of(double value, double step) {
  char text[40];
  const double size = std::max(std::fabs(value), step);
  if (size >= 1e5 || size < 1e-3) {
    const int digits =
        static_cast<int>(std::floor(std::log10(size)) - std::floor(std::log10(step) + 1e-9)) + 1;
    std::snprintf(text, sizeof text, "%.*g", std::clamp(digits, 1, 15), value);
  } else {
    const int decimals = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
    std::snprintf(text, sizeof text, "%.*f", decimals, value == 0 ? 0.0 : value);
  }
  return text;
}

std::vector<Tick> linear_ticks(double low, double high, int most) {
  const double raw = (high - low) / std::max(1, most - 1);
  const double power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double times : {1.0, 2.0, 5.0})
    if (times * power >= raw * (1 - 1e-9)) {
      step = times * power;
      break;
    }
  std::vector<Tick> ticks;
  if (std::max(std::fabs(low), std::fabs(high)) / step > 1e13) return ticks;  // too close to be distinguished
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k)
    ticks.push_back({k * step, label_of(k * step, step)});
  return ticks;
}

std::vector<Tick> logarithmic_ticks(double low, double high, int most) {
  const int first = static_cast<int>(std::ceil(std::log10(low) - 1e-9)),
            last = static_cast<int>(std::floor(std::log10(high) + 1e-9));
  const auto label = [](double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%g", value);
    return std::string(text);
  };
  std::vector<Tick> ticks;
  if (last - first < 1) {
    for (int power = first - 1; power <= last; ++power)
      for (const double times : {1.0, 2.0, 5.0}) {
        const double value = times * std::pow(10, power);
        if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) ticks.push_back({value, label(value)});
      }
  } else {
    const int stride = std::max(1, (last - first + most) / std::max(1, most));
    for (int power = first; power <= last; power += stride)
      ticks.push_back({std::pow(10, power), label(std::pow(10, power))});
  }
  return ticks;
}

}  // namespace

double Axis::pixel(double value) const {
  const double t = logarithmic ? (std::log10(value) - std::log10(low)) / (std::log10(high) - std::log10(low))
                               : (value - low) / (high - low);
  return from + t * (to - from);
}

std::vector<Tick> ticks_of(const Axis& axis, int most) {
  const auto [low, high] = std::minmax(axis.low, axis.high);  // rows of an image count downwards
  return axis.logarithmic ? logarithmic_ticks(low, high, most) : linear_ticks(low, high, most);
}

std::vector<Tick> ticks_that_fit(const Axis& axis, bool across) {
  for (int most = across ? 12 : 8; most > 2; --most) {
    auto ticks = ticks_of(axis, most);
    bool fits = true;
    for (std::size_t i = 1; i < ticks.size(); ++i) {
      const double apart = std::fabs(axis.pixel(ticks[i].value) - axis.pixel(ticks[i - 1].value));
      const double needed = across ? (svg_text_width(ticks[i].label, label_size) +
                                      svg_text_width(ticks[i - 1].label, label_size)) /
                                             2.0 +
                                         gap
                                   : label_size + gap / 2;
      fits &= apart >= needed;
    }
    if (fits && !ticks.empty()) return ticks;
  }
  auto ticks = ticks_of(axis, 2);
  if (ticks.empty()) {
    const double step = std::max({std::fabs(axis.high - axis.low), std::fabs(axis.low) * 1e-12, 1e-300});
    ticks.push_back({axis.low, label_of(axis.low, step)});
  }
  ticks.resize(1);
  return ticks;
}

Chart::Chart(const ChartFrame& frame, Axis x, Axis y, double right) : x_(x), y_(y), title_(frame.title) {
  const double top = frame.title.empty() ? 16 : 40, bottom = frame.x_label.empty() ? 32 : 52;
  y_.from = frame.height - bottom, y_.to = top;
  const auto up = ticks_that_fit(y_, false);
  double widest = 0;
  for (const auto& tick : up) widest = std::max<double>(widest, svg_text_width(tick.label, label_size));
  x_.from = 12 + widest + gap + (frame.y_label.empty() ? 0 : 20);
  x_.to = frame.width - 20 - right;
  draw(frame, ticks_that_fit(x_, true), up);
}

void Chart::draw(const ChartFrame& frame, const std::vector<Tick>& across, const std::vector<Tick>& up) {
  const std::string small = "font-size=\"" + std::to_string(label_size) + "\"";
  const double left = x_.from, right = x_.to, bottom = y_.from, top = y_.to;
  for (const auto& tick : up) {
    svg_.rect(left, y_.pixel(tick.value), right - left, 1, "fill=\"#e4e4e4\"");
    svg_.text(left - gap, y_.pixel(tick.value) + 4, tick.label, small + " text-anchor=\"end\"");
  }
  for (const auto& tick : across) {
    svg_.rect(x_.pixel(tick.value), top, 1, bottom - top, "fill=\"#e4e4e4\"");
    svg_.text(x_.pixel(tick.value), bottom + 18, tick.label, small + " text-anchor=\"middle\"");
  }
  svg_.rect(left, top, right - left, bottom - top, "fill=\"none\" stroke=\"#888888\"");
  if (!frame.title.empty()) svg_.text(left, 24, frame.title, "font-size=\"14\"");
  if (!frame.x_label.empty())
    svg_.text((left + right) / 2, bottom + 40, frame.x_label, "text-anchor=\"middle\"");
  if (!frame.y_label.empty()) {
    const auto middle = std::to_string(static_cast<int>((top + bottom) / 2));
    svg_.text(18, (top + bottom) / 2, frame.y_label,
              "text-anchor=\"middle\" transform=\"rotate(-90 18 " + middle + ")\"");
  }
  svg_.reach(frame.width - svg_margin, frame.height - svg_margin);
}

void Chart::legend(const std::vector<LegendEntry>& entries,
                   const std::vector<std::pair<double, double>>& points) {
  if (entries.empty()) return;
  double width = 0;
  for (const auto& e : entries) width = std::max<double>(width, svg_text_width(e.label, label_size) + 40);
  const double height = 16.0 * static_cast<double>(entries.size()) + 8;
  double best_x = 0, best_y = 0;
  std::size_t fewest = points.size() + 1;
  for (const double x : {x_.to - width - 8, x_.from + 8})
    for (const double y : {y_.to + 8, y_.from - height - 8}) {
      const auto covered =
          static_cast<std::size_t>(std::count_if(points.begin(), points.end(), [&](const auto& p) {
            return p.first >= x && p.first <= x + width && p.second >= y && p.second <= y + height;
          }));
      if (covered < fewest) fewest = covered, best_x = x, best_y = y;
    }
  svg_.rect(best_x, best_y, width, height, "fill=\"#ffffff\" fill-opacity=\"0.85\" stroke=\"#cccccc\"");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const double y = best_y + 16.0 * static_cast<double>(i) + 16;
    svg_.rect(best_x + 8, y - 5, 18, 2, "fill=\"" + entries[i].colour + "\"");
    svg_.text(best_x + 32, y, entries[i].label, "font-size=\"" + std::to_string(label_size) + "\"");
  }
}

std::string curve_colour(std::size_t number) {
  static constexpr std::array<const char*, 10> colours{"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd",
                                                       "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf"};
  return colours[number % colours.size()];
}

}  // namespace tessera::viz
