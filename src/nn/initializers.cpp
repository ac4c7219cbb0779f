// Weights whose variance is scaled by their number of inputs and outputs, as in jax.nn.initializers.
#include <tessera/nn.hpp>

#include <algorithm>
#include <cmath>

#include "base/call.hpp"

namespace tessera::nn {
namespace {

// The standard deviation of the standard normal distribution truncated to two standard deviations.
constexpr double truncated_deviation = 0.87962566103423978;

struct Fans {
  double in, out;
};

int checked_axis(int axis, int ndim) {
  if (axis < -ndim || axis >= ndim)
    throw IndexError(call_text() + ": axis " + std::to_string(axis) + " is out of range for " +
                     std::to_string(ndim) + " dimensions");
  return axis < 0 ? axis + ndim : axis;
}

Fans fans_of(const Shape& shape, const VarianceScaling& options) {
  const int ndim = static_cast<int>(shape.size());
  if (ndim < 2)
    throw ShapeError(
        call_text() + ": the shape " + to_string(shape) +
        " has no inputs and outputs; a weight has two dimensions or more. A bias starts as zeros");
  const int in = checked_axis(options.in_axis, ndim), out = checked_axis(options.out_axis, ndim);
  double window = 1;
  for (int d = 0; d < ndim; ++d)
    if (d != in && d != out) window *= static_cast<double>(shape[d]);
  return {window * static_cast<double>(shape[in]), window * static_cast<double>(shape[out])};
}

double counted(const Fans& fans, Fan fan) {
  return fan == Fan::in ? fans.in : fan == Fan::out ? fans.out : (fans.in + fans.out) / 2;
}

}  // namespace

Array variance_scaling(const random::Key& key, Shape shape, VarianceScaling options, Dtype dtype,
                       Where where) {
  const Call call("variance_scaling", where);
  const double fan = counted(fans_of(shape, options), options.fan);
  if (!(options.scale > 0))
    throw ArgumentError(call_text() + ": scale is " + std::to_string(options.scale) +
                        "; it must be positive");
  const double variance = options.scale / std::max(fan, 1.0), deviation = std::sqrt(variance);
  switch (options.draw) {
    case Draw::uniform: return random::uniform(key, shape, dtype, -1, 1, where) * std::sqrt(3 * variance);
    case Draw::normal: return random::normal(key, shape, dtype, where) * deviation;
    case Draw::truncated_normal: break;
  }
  return random::truncated_normal(key, -2, 2, shape, dtype, where) * (deviation / truncated_deviation);
}

namespace {
Array scaled(const char* name, const VarianceScaling& options, const random::Key& key, const Shape& shape,
             Dtype dtype, Where where) {
  const Call call(name, where);
  return variance_scaling(key, shape, options, dtype, where);
}
}  // namespace

Array lecun_normal(const random::Key& key, const Shape& shape, Dtype dtype, Where where) {
  return scaled("lecun_normal", {1, Fan::in, Draw::truncated_normal}, key, shape, dtype, where);
}
Array lecun_uniform(const random::Key& key, const Shape& shape, Dtype dtype, Where where) {
  return scaled("lecun_uniform", {1, Fan::in, Draw::uniform}, key, shape, dtype, where);
}
Array glorot_normal(const random::Key& key, const Shape& shape, Dtype dtype, Where where) {
  return scaled("glorot_normal", {1, Fan::average, Draw::truncated_normal}, key, shape, dtype, where);
}
Array glorot_uniform(const random::Key& key, const Shape& shape, Dtype dtype, Where where) {
  return scaled("glorot_uniform", {1, Fan::average, Draw::uniform}, key, shape, dtype, where);
}
Array he_normal(const random::Key& key, const Shape& shape, Dtype dtype, Where where) {
  return scaled("he_normal", {2, Fan::in, Draw::truncated_normal}, key, shape, dtype, where);
}
Array he_uniform(const random::Key& key, const Shape& shape, Dtype dtype, Where where) {
  return scaled("he_uniform", {2, Fan::in, Draw::uniform}, key, shape, dtype, where);
}

}  // namespace tessera::nn
