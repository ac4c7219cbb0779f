#include <tessera/visualize.hpp>

#include <cmath>

#include <tessera/error.hpp>

#include "base/call.hpp"
#include "viz/canvas.hpp"

namespace tessera::debug {
namespace {

using namespace viz;

void check(const VisualizeOptions& options) {
  constexpr double largest_scale = 1000;
  constexpr int smallest_width = 20, largest_width = 10000;
  if (!(options.scale > 0 && options.scale <= largest_scale)) {
    throw ArgumentError(call_text() + ": scale must lie above 0 and not above 1000, got " +
                        std::to_string(options.scale));
  }
  if (options.min_width < 1) {
    throw ArgumentError(call_text() + ": min_width must be at least 1, got " +
                        std::to_string(options.min_width));
  }
  if (options.max_width < smallest_width || options.max_width > largest_width) {
    throw ArgumentError(call_text() + ": max_width must lie between 20 and 10000, got " +
                        std::to_string(options.max_width));
  }
}

ColourDepth depth_for(const VisualizeOptions& options) {
  if (!options.use_color) return ColourDepth::none;
  if (options.is_terminal) return *options.is_terminal ? ColourDepth::truecolour : ColourDepth::none;
  return stdout_colour_depth();
}

}  // namespace

std::string visualize_sharding(const Shape& shape, const Sharding& sharding, VisualizeOptions options,
                               std::source_location where) {
  const Call call("visualize_sharding", where);
  check(options);
  const Picture picture = picture_of(shape, sharding, call_text().c_str());
  const ColourDepth depth = depth_for(options);
  const Form form = depth == ColourDepth::none ? Form::framed : Form::coloured;
  const std::vector<Line> lines = draw(picture, lay_out(picture, options, form), form);
  return form == Form::framed ? to_plain(lines) : to_ansi(lines, depth);
}

std::string sharding_html(const Shape& shape, const Sharding& sharding, std::source_location where) {
  const Call call("sharding_html", where);
  const Picture picture = picture_of(shape, sharding, call_text().c_str());
  return to_html(draw(picture, lay_out(picture, {}, Form::coloured), Form::coloured));
}

}  // namespace tessera::debug
