// Maps numbers to colours.
#pragma once
#include <string>
#include <vector>

#include "viz/palette.hpp"

namespace tessera::viz {

// matplotlib's colour maps, interpolated linearly between a few of their colours.
class Colormap {
 public:
  explicit Colormap(const std::string& name);  // ArgumentError that lists the names
  Rgb at(double t) const;                      // t in [0, 1]

 private:
  const std::vector<unsigned>* anchors_;
};

}  // namespace tessera::viz
