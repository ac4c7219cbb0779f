// The public functions: each rank's contribution, and rank 0's drawing.
#include <tessera/runtime.hpp>
#include <tessera/viz.hpp>

#include <algorithm>
#include <fstream>
#include <functional>
#include <limits>

#include "base/text.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/watch/agreement.hpp"
#include "graph/op.hpp"
#include "viz/data/chart.hpp"
#include "viz/data/drawings.hpp"
#include "viz/data/png.hpp"
#include "viz/data/sampling.hpp"
#include "viz/terminal.hpp"

namespace tessera::viz {
namespace {

constexpr std::int64_t most_points = 4000;  // most points drawn of a curve

void check_ending(const std::string& path, const std::vector<std::string>& endings) {
  for (const auto& ending : endings)
    if (path.size() > ending.size() && path.ends_with(ending)) return;
  throw ArgumentError(call_text() + ": the path " + in_quotes(path) + " must end in " +
                      join(endings, " or "));
}
void check_between(const char* option, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high)
    throw ArgumentError(call_text() + ": " + option + " is " + std::to_string(value) + "; it must be from " +
                        std::to_string(low) + " to " + std::to_string(high));
}
void check_limits(const std::optional<double>& low, const std::optional<double>& high) {
  if ((low && !std::isfinite(*low)) || (high && !std::isfinite(*high)) || (low && high && !(*low < *high)))
    throw ArgumentError(call_text() + ": the limits must be finite, and the lower one below the upper one");
}
void check_ndim(const Array& x, int low, int high, const char* what) {
  check_usable(x);
  if (x.ndim() < low || x.ndim() > high)
    throw ShapeError(call_text() + ": " + what + ", and not " + describe(x));
}
void check_values_are_there(const Array& x) {
  if (x.node()->has_placeholder || x.node()->region)
    throw ArgumentError(call_text() + ": " + describe(x) +
                        " has no value while a function is traced; return it, or hand it to debug::callback");
}

// Writes the file on rank 0; raises its errors on all ranks.
void write_on_first(const std::string& path, const std::function<std::string()>& content) {
  std::string failure;
  if (comm::world().rank() == 0) {
    std::ofstream file(path, std::ios::binary);
    file << content();
    file.close();
    if (!file) failure = in_quotes(path) + " cannot be written; does its folder exist, and is there space?";
  }
  const auto first = comm::first_error(comm::world(), failure);
  if (!first.empty()) throw IoError(call_text() + ": " + first);
}

// A longer curve keeps the least and largest value of each run, at the middle of their positions.
Points thinned(const DataGrid& least, const DataGrid& most, const DataGrid& places) {
  Points points;
  for (std::size_t i = 0; i < least.values.size(); ++i) {
    points.emplace_back(places.values[i], least.values[i]);
    if (most.values[i] != least.values[i]) points.emplace_back(places.values[i], most.values[i]);
  }
  return points;
}

Points points_of(const Curve& curve) {
  const auto n = curve.y.shape()[0];
  const bool thins = n > most_points;
  const auto parts = thins ? most_points / 2 : n;
  const DataGrid least = sampled(curve.y, 1, parts, thins ? Combine::least : Combine::mean),
                 most = thins ? sampled(curve.y, 1, parts, Combine::most) : least;
  DataGrid places{1, parts};
  if (curve.x) places = sampled(*curve.x, 1, parts);
  if (!curve.x && comm::world().rank() == 0)
    for (std::int64_t i = 0; i < parts; ++i)
      places.values.push_back(thins ? (static_cast<double>(i) + 0.5) * static_cast<double>(n) /
                                          static_cast<double>(parts)
                                    : static_cast<double>(i));
  return thinned(least, most, places);
}

void check_plot(const PlotOptions& options) {
  check_between("width", options.width, 200, 4000);
  check_between("height", options.height, 150, 4000);
}

void draw_curves(const std::string& path, const std::vector<Curve>& curves, const PlotOptions& options) {
  check_ending(path, {".svg"});
  check_plot(options);
  if (curves.empty()) throw ArgumentError(call_text() + ": there are no curves to draw");
  for (const auto& curve : curves) {
    check_ndim(curve.y, 1, 1, "a curve has one dimension");
    check_values_are_there(curve.y);
    if (!curve.x) continue;
    check_ndim(*curve.x, 1, 1, "the places of a curve have one dimension");
    check_values_are_there(*curve.x);
    if (!(curve.x->shape() == curve.y.shape()))
      throw ShapeError(call_text() + ": the curve " + in_quotes(curve.label) + " has " +
                       format_count(curve.y.size(), "value") + " and " +
                       format_count(curve.x->size(), "place"));
  }
  std::vector<DrawnCurve> drawn;
  for (const auto& curve : curves) drawn.push_back({curve.label, points_of(curve)});
  write_on_first(path, [&] { return plot_svg(drawn, options); });
}

}  // namespace

void image(const std::string& path, const Operand& x, ImageOptions options) {
  const Call call("viz::image", x.where);
  check_ending(path, {".png", ".svg"});
  check_ndim(x.array, 2, 2, "an image has two dimensions");
  check_values_are_there(x.array);
  check_between("max_pixels", options.max_pixels, 1, 16384);
  check_between("enlarge", options.enlarge, 1, 64);
  check_limits(options.vmin, options.vmax);
  const Colormap colours(options.colormap);
  if (x.array.size() == 0)
    throw ShapeError(call_text() + ": " + describe(x.array) + " has no elements to draw");
  const DataGrid grid = sampled(x.array, options.max_pixels, options.max_pixels);
  write_on_first(path, [&] {
    const auto range = range_of(grid.values, options.vmin, options.vmax);
    return path.ends_with(".png") ? png_of(grid, range, colours, options.enlarge)
                                  : image_svg(grid, range, options, x.array.shape()[0], x.array.shape()[1]);
  });
}

void plot(const std::string& path, const std::vector<Curve>& curves, PlotOptions options,
          std::source_location where) {
  const Call call("viz::plot", where);
  draw_curves(path, curves, options);
}
void plot(const std::string& path, const Array& y, PlotOptions options, std::source_location where) {
  const Call call("viz::plot", where);
  draw_curves(path, {{y}}, options);
}

void histogram(const std::string& path, const Operand& x, HistogramOptions options) {
  const Call call("viz::histogram", x.where);
  check_ending(path, {".svg"});
  check_plot(options.plot);
  check_between("bins", options.bins, 1, 1000);
  check_limits(options.low, options.high);
  check_usable(x.array);
  check_values_are_there(x.array);
  const auto found = finite_range(x.array).value_or(ValueRange{});
  const auto range = range_of({found.low, found.high}, options.low, options.high);
  const auto counts = counts_in_bins(x.array, range, options.bins);
  write_on_first(path, [&] { return histogram_svg(counts, range, options.plot); });
}

std::string terminal(const Operand& x, TerminalOptions options) {
  const Call call("viz::terminal", x.where);
  check_ndim(x.array, 1, 2, "an array of one or two dimensions can be drawn");
  check_values_are_there(x.array);
  check_between("columns", options.columns, 8, 1000);
  check_between("rows", options.rows, 1, 1000);
  check_limits(options.vmin, options.vmax);
  const Colormap known(options.colormap);
  if (x.array.size() == 0) return "";
  const bool colour = options.colour.value_or(stdout_ends_at_terminal());
  const bool is_curve = x.array.ndim() == 1;
  const DataGrid grid = is_curve ? sampled(x.array, 1, options.columns)
                        : colour ? sampled(x.array, 2 * options.rows, options.columns)
                                 : sampled(x.array, options.rows, options.columns / 2);
  if (comm::world().rank() != 0) return "";
  const auto range = range_of(grid.values, options.vmin, options.vmax);
  return is_curve ? bars_text(grid.values, range, std::min(options.rows, 8))
                  : shaded_text(grid, range, options.colormap, colour);
}

}  // namespace tessera::viz
