// The frame of a chart: axes whose labels keep clear of each other, title, legend.
#pragma once
#include <string>
#include <vector>

#include "viz/svg_writer.hpp"

namespace tessera::viz {

// One direction of a chart: numbers to pixels.
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

// Round numbers in [low, high], at most `most` of them: 1, 2 or 5 times a power of ten apart; of a
// logarithmic axis powers of ten, or where there is but one, its 2 and 5 too.
std::vector<Tick> ticks_of(const Axis&, int most);
// As many ticks as there are places for labels: beside each other (`across`), or below each other.
std::vector<Tick> ticks_that_fit(const Axis&, bool across);

struct Frame {
  std::string title, x_label, y_label;
  int width = 720, height = 440;
};
struct LegendEntry {
  std::string label, colour;
};

// Takes the pixels that the frame leaves to the axes (y upwards) and draws it.
class Chart {
 public:
  // `right`: pixels kept free at the right.
  Chart(const Frame&, Axis x, Axis y, double right = 0);
  const Axis& x() const { return x_; }
  const Axis& y() const { return y_; }
  SvgWriter& svg() { return svg_; }
  // Over the plot, in the corner where the fewest of these points lie.
  void legend(const std::vector<LegendEntry>&, const std::vector<std::pair<double, double>>& points);
  std::string document() const { return svg_.document(title_); }

 private:
  void draw(const Frame&, const std::vector<Tick>& across, const std::vector<Tick>& up);

  SvgWriter svg_;
  Axis x_, y_;
  std::string title_;
};

// Colours of curves, which differ for ten.
std::string curve_colour(std::size_t number);

}  // namespace tessera::viz
