// Rates that depend on the step, and the norm of a tree.
#include <tessera/optim.hpp>

#include <cmath>
#include <numbers>
#include <string>

#include "base/call.hpp"

namespace tessera::optim {
namespace {

void check_steps(int steps) {
  if (steps <= 0)
    throw ArgumentError(call_text() + ": " + std::to_string(steps) + " steps; there must be at least one");
}

// Rises from 0 at step 0 to 1 at `steps`, and stays there.
Array share_of(const Array& made, int steps) { return astype(minimum(made, steps), float32) / steps; }

}  // namespace

Schedule constant(double value) {
  return [=](const Array&) { return full({}, value); };
}

Schedule linear(double init, double end, int steps, Where where) {
  const Call call("linear", where);
  check_steps(steps);
  return [=](const Array& made) { return init + (end - init) * share_of(made, steps); };
}

Schedule cosine_decay(double init, int steps, double alpha, Where where) {
  const Call call("cosine_decay", where);
  check_steps(steps);
  return [=](const Array& made) {
    const Array cosine = 0.5 * (1 + cos(std::numbers::pi * share_of(made, steps)));
    return init * ((1 - alpha) * cosine + alpha);
  };
}

Schedule exponential_decay(double init, int steps, double decay, bool staircase, Where where) {
  const Call call("exponential_decay", where);
  check_steps(steps);
  if (!(decay > 0))
    throw ArgumentError(call_text() + ": decay is " + std::to_string(decay) + "; it must be positive");
  return [=](const Array& made) {
    const Array periods = astype(made, float32) / steps;
    return init * power(decay, staircase ? floor(periods) : periods);
  };
}

Schedule warmup_cosine_decay(double init, double peak, int warmup_steps, int steps, double end, Where where) {
  const Call call("warmup_cosine_decay", where);
  if (warmup_steps <= 0 || warmup_steps >= steps)
    throw ArgumentError(call_text() + ": " + std::to_string(warmup_steps) + " of " + std::to_string(steps) +
                        " steps are to warm up; there must be at least one, and one behind them");
  if (!(peak > 0))
    throw ArgumentError(call_text() + ": peak is " + std::to_string(peak) + "; it must be positive");
  return join(linear(init, peak, warmup_steps), warmup_steps,
              cosine_decay(peak, steps - warmup_steps, end / peak));
}

Schedule join(Schedule first, int boundary, Schedule second) {
  return [=](const Array& made) { return where(made < boundary, first(made), second(made - boundary)); };
}

namespace detail {

Array global_norm(const std::vector<Array>& leaves) {
  Array total = 0.f;
  for (const Array& x : leaves) total = total + sum(square(abs(x)));
  return sqrt(total);
}

Array clipped(const Array& gradient, const Array& norm, double largest) {
  return where(norm < largest, gradient, astype(gradient / norm * largest, gradient.dtype()));
}

void check_largest_norm(double largest, Where where) {
  const Call call("clip_by_global_norm", where);
  if (!(largest > 0))
    throw ArgumentError(call_text() + ": the largest norm is " + std::to_string(largest) +
                        "; it must be positive");
}

}  // namespace detail
}  // namespace tessera::optim
