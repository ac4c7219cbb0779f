#include "viz/data/colormap.hpp"

#include <tessera/error.hpp>
#include <tessera/viz.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/call.hpp"
#include "base/text.hpp"

namespace tessera::viz {
namespace {

const std::map<std::string, std::vector<unsigned>>& tables() {
  static const std::map<std::string, std::vector<unsigned>> all{
      {"coolwarm", {0x3b4cc0, 0x6788ee, 0x9abbff, 0xc9d7f0, 0xedd1c2, 0xf7a889, 0xe26952, 0xb40426}},
      {"gray", {0x000000, 0xffffff}},
      {"inferno",
       {0x000004, 0x1b0c41, 0x4a0c6b, 0x781c6d, 0xa52c60, 0xcf4446, 0xed6925, 0xfb9b06, 0xf7d13d, 0xfcffa4}},
      {"magma",
       {0x000004, 0x180f3d, 0x440f76, 0x721f81, 0x9e2f7f, 0xcd4071, 0xf1605d, 0xfd9668, 0xfeca8d, 0xfcfdbf}},
      {"plasma",
       {0x0d0887, 0x46039f, 0x7201a8, 0x9c179e, 0xbd3786, 0xd8576b, 0xed7953, 0xfb9f3a, 0xfdca26, 0xf0f921}},
      {"viridis",
       {0x440154, 0x482878, 0x3e4989, 0x31688e, 0x26828e, 0x1f9e89, 0x35b779, 0x6ece58, 0xb5de2b, 0xfde725}},
  };
  return all;
}

std::uint8_t between(unsigned a, unsigned b, int shift, double t) {
  const double from = (a >> shift) & 0xff, to = (b >> shift) & 0xff;
  return static_cast<std::uint8_t>(std::lround(from + (to - from) * t));
}

}  // namespace

std::vector<std::string> colormaps() {
  std::vector<std::string> names;
  for (const auto& [name, anchors] : tables()) names.push_back(name);
  return names;
}

Colormap::Colormap(const std::string& name) : anchors_(nullptr) {
  const auto found = tables().find(name);
  if (found == tables().end())
    throw ArgumentError(call_text() + ": there is no colormap " + in_quotes(name) +
                        did_you_mean(name, colormaps()) + "; there are " + join(colormaps()));
  anchors_ = &found->second;
}

Rgb Colormap::at(double t) const {
  const double place = std::clamp(t, 0.0, 1.0) * static_cast<double>(anchors_->size() - 1);
  const auto first = std::min(static_cast<std::size_t>(place), anchors_->size() - 2);
  const auto a = (*anchors_)[first], b = (*anchors_)[first + 1];
  const double rest = place - static_cast<double>(first);
  return {between(a, b, 16, rest), between(a, b, 8, rest), between(a, b, 0, rest)};
}

}  // namespace tessera::viz
