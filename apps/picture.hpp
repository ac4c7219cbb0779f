// Pictures of numbers for a terminal.
#pragma once
#include <tessera/tessera.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace apps {

// Every so many elements along an axis, so that few are left and little is gathered.
inline tessera::Array thinned(const tessera::Array& x, int axis, std::int64_t most) {
  using namespace tessera;
  const std::int64_t extent = x.shape()[static_cast<std::size_t>(axis)];
  const std::int64_t step = std::max<std::int64_t>((extent + most - 1) / most, 1);
  return axis == 0 ? x(slice(0, None, step)) : x(slice(), slice(0, None, step));
}

// A curve as one line of bars, a matrix as shades: 72 columns and 24 lines at most. Collective; written once.
inline void picture(const std::string& title, const tessera::Array& x) {
  static const std::vector<std::string> bars{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
      shades{" ", "·", ":", "-", "=", "+", "*", "#", "█"};
  const bool is_curve = x.ndim() == 1;
  const tessera::Array few = is_curve ? thinned(x, 0, 72) : thinned(thinned(x, 0, 24), 1, 72);
  const auto values = tessera::to_vector<double>(few);
  if (!tessera::is_main_process() || values.empty()) return;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const auto width = static_cast<std::size_t>(few.shape()[is_curve ? 0 : 1]);
  std::string text = title + "\n";
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double share = *high > *low ? (values[i] - *low) / (*high - *low) : 0.5;
    const auto level =
        share >= 0 && share <= 1 ? static_cast<std::size_t>(share * 8 + 0.5) : 0;  // NaN is blank
    text += (is_curve ? bars : shades)[level];
    if (i % width == width - 1) text += "\n";
  }
  std::printf("%s", text.c_str());
}

}  // namespace apps
