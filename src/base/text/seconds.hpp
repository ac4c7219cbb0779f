// Seconds as text.
#pragma once
#include <cstdio>
#include <string>
#include <utility>

namespace tessera {

// 18.2 us, 4.53 ms, 1.75 s; with so many significant digits.
inline std::string format_seconds(double seconds, int digits = 3) {
  const auto [scale, unit] = seconds < 1e-3 ? std::pair(1e6, "us")
                             : seconds < 1  ? std::pair(1e3, "ms")
                                            : std::pair(1.0, "s");
  char text[48];
  std::snprintf(text, sizeof text, "%.*g %s", digits, seconds * scale, unit);
  return text;
}

}  // namespace tessera
