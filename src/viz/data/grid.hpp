// The numbers of a picture of data, row by row. NaN marks a gap.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace tessera::viz {

struct DataGrid {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values = {};
  double at(std::int64_t row, std::int64_t column) const { return values[row * columns + column]; }
};

// The numbers from `low` to `high`, which a picture maps to colours or heights; never empty.
struct ValueRange {
  double low = 0, high = 1;
  // The position of a value in the range, clamped to [0, 1].
  double place(double value) const {
    const double t = (value - low) / (high - low);
    return t < 0 ? 0 : t > 1 ? 1 : t;
  }
};
inline ValueRange range_of(const std::vector<double>& values, std::optional<double> low,
                           std::optional<double> high) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const double v : values)
    if (std::isfinite(v)) least = std::fmin(least, v), most = std::fmax(most, v);
  if (least > most) least = 0, most = 1;
  ValueRange range{low.value_or(least), high.value_or(most)};
  if (!(range.high > range.low)) range.high = range.low + (range.low == 0 ? 1 : std::fabs(range.low));
  return range;
}

}  // namespace tessera::viz
