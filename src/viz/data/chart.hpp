// The frame of a chart: axes whose labels do not overlap, title, legend.
#pragma once
#include <string>
#include <vector>

#include "viz/svg_writer.hpp"

namespace tessera::viz {

// One direction of a chart: maps numbers to pixels.
struct Axis {
  double low = 0, high = 1;
  bool logarithmic = false;
  double from = 0, to = 1;  // pixels of low and high
  double pixel(double value) const;
};
struct Tick {
  double value;
  std::string label;
};

// Round numbers in [low, high], at most `most` of them, in steps of 1, 2 or 5 times a power of ten; on a
// logarithmic axis powers of ten, and if there is only one, also its multiples by 2 and 5.
std::vector<Tick> ticks_of(const Axis&, int most);
// Returns as many ticks as fit without overlapping labels: side by side (`across`), or one above the other.
std::vector<Tick> ticks_that_fit(const Axis&, bool across);

struct ChartFrame {
  std::string title, x_label, y_label;
  int width = 720, height = 440;
};
struct LegendEntry {
  std::string label, colour;
};

// Draws the frame and leaves the remaining pixels to the axes (y upwards).
class Chart {
 public:
  // `right`: pixels reserved on the right.
  Chart(const ChartFrame&, Axis x, Axis y, double right = 0);
  const Axis& x() const { return x_; }
  const Axis& y() const { return y_; }
  SvgWriter& svg() { return svg_; }
  // Drawn over the plot, in the corner with the fewest of these points.
  void legend(const std::vector<LegendEntry>&, const std::vector<std::pair<double, double>>& points);
  std::string document() const { return svg_.document(title_); }

 private:
  void draw(const ChartFrame&, const std::vector<Tick>& across, const std::vector<Tick>& up);

  SvgWriter svg_;
  Axis x_, y_;
  std::string title_;
};

// Colours of curves; ten are distinct.
std::string curve_colour(std::size_t number);

}  // namespace tessera::viz
