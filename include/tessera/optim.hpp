/// @file
/// Optimizers, schedules and clipping for trees of parameters. Not part of tessera/tessera.hpp: include it by
/// name. Formulas and defaults are Optax's.
///
/// An optimizer is a value with two functions on trees:
///
///   start(parameters) -> state                             the state has the parameters' layouts
///   update(gradients, state, parameters) -> {parameters, state}
///
/// A training step is then an ordinary function, to be compiled with both arguments donated:
///
///   const optim::Adam adam{.rate = optim::warmup_cosine_decay(0, 1e-3, 100, 10'000)};
///   auto state = adam.start(network);
///   const auto step = jit(optim::train_step(adam, loss), {.donate_argnums = {0, 1}});
///   for (const auto& [x, y] : batches) std::tie(network, state, value) = step(network, state, x, y);
///
/// **Sharding.** Elementwise: parameters, state and gradients have the same layouts, and nothing moves.
///
/// **Communication.** Not collective: every function here records. global_norm sums over ranks if parameters
/// are split; nothing else is sent besides the gradients' own sums.
///
/// **Numbers.** In the parameters' dtype; a rate that depends on the step is float32.
///
/// **Errors.** ArgumentError if gradients and parameters differ in structure, and for invalid numbers, on
/// every rank when recorded.
#pragma once
#include <functional>
#include <optional>
#include <source_location>
#include <tuple>
#include <utility>

#include <tessera/grad.hpp>
#include <tessera/ops.hpp>
#include <tessera/tree.hpp>

namespace tessera::optim {

using Where = std::source_location;  ///< the line of the call

/// @name Schedules
/// Rates as functions of the number of completed steps (an integer scalar, 0 in the first step), which may be
/// traced.
/// @{

/// A scalar from the number of steps.
using Schedule = std::function<Array(const Array& steps)>;

/// A number, or a schedule.
class Rate {
 public:
  /// The same rate in every step.
  Rate(double constant) : constant_(constant) {}
  /// A rate that depends on the step.
  Rate(Schedule schedule) : schedule_(std::move(schedule)) {}
  /// The rate after this number of steps.
  Array operator()(const Array& steps) const { return schedule_ ? schedule_(steps) : Array(constant_); }

 private:
  double constant_ = 0;
  Schedule schedule_;
};

/// A constant rate.
Schedule constant(double value);
/// From init to end in equal steps, then constant. ArgumentError unless steps > 0.
Schedule linear(double init, double end, int steps, Where = Where::current());
/// From init along half a cosine to alpha init, then constant: init ((1 - alpha) (1 + cos(pi t / steps)) / 2
/// + alpha) (Loshchilov and Hutter 2017). ArgumentError unless steps > 0.
Schedule cosine_decay(double init, int steps, double alpha = 0, Where = Where::current());
/// init decay^(t / steps); in jumps at multiples of `steps` if staircase. ArgumentError unless steps > 0 and
/// decay > 0.
Schedule exponential_decay(double init, int steps, double decay, bool staircase = false,
                           Where = Where::current());
/// From init to peak in equal steps, then along half a cosine to end; `steps` counts both. ArgumentError
/// unless 0 < warmup_steps < steps and peak > 0.
Schedule warmup_cosine_decay(double init, double peak, int warmup_steps, int steps, double end = 0,
                             Where = Where::current());
/// `first` before step `boundary`, then `second`, whose steps count from there.
Schedule join(Schedule first, int boundary, Schedule second);
/// @}

/// @name Trees
/// @{

/// Zeros with the shapes, dtypes and layouts of a tree's leaves.
template <class Tree> Tree zeros_like_tree(const Tree& tree) {
  return tree_map(
      [](const Array& x) {
        return x.is_committed() ? device_put(zeros_like(x), x.sharding()) : zeros_like(x);
      },
      tree);
}

namespace detail {
Array global_norm(const std::vector<Array>& leaves);
Array clipped(const Array& gradient, const Array& norm, double largest);
void check_largest_norm(double largest, Where);
}  // namespace detail

/// sqrt of the sum of |x|^2 over all elements of all leaves: a scalar. Split leaves are summed over their
/// ranks.
template <class Tree> Array global_norm(const Tree& tree) { return detail::global_norm(tree_leaves(tree)); }

/// The gradients, scaled down to a global norm of `largest` if theirs is larger (Pascanu et al. 2013).
/// ArgumentError unless largest > 0.
template <class Tree>
Tree clip_by_global_norm(const Tree& gradients, double largest, Where where = Where::current()) {
  detail::check_largest_norm(largest, where);
  const Array norm = global_norm(gradients);
  return tree_map([&](const Array& g) { return detail::clipped(g, norm, largest); }, gradients);
}
/// @}

/// @name Optimizers
/// @{

/// Stochastic gradient descent, with momentum if nonzero: v = momentum v + g, p = p - rate v (Polyak 1964);
/// nesterov looks ahead: p = p - rate (g + momentum v).
struct Sgd {
  Rate rate = 0.1;        ///< the step size
  double momentum = 0;    ///< the fraction of the last step that is kept
  bool nesterov = false;  ///< Nesterov's momentum (1983)

  /// The state carried from step to step.
  template <class Tree> struct State {
    std::optional<Tree> velocity;  ///< v, if there is momentum
    Array steps;                   ///< number of completed steps, int32
  };
  /// The state before the first step.
  template <class Tree> State<Tree> start(const Tree& parameters) const {
    return {momentum == 0 ? std::nullopt : std::optional<Tree>(zeros_like_tree(parameters)),
            zeros({}, int32)};
  }
  /// The parameters and the state after one more step.
  template <class Tree> std::pair<Tree, State<Tree>> update(const Tree& gradients, const State<Tree>& state,
                                                            const Tree& parameters) const;
};

/// Adam (Kingma and Ba 2015, algorithm 1): means of gradients and of their squares, corrected for their start
/// at 0. With weight_decay AdamW (Loshchilov and Hutter 2019): p = p - rate (m / (sqrt(s) + epsilon) +
/// weight_decay p); Optax's adamw uses 1e-4.
struct Adam {
  Rate rate = 1e-3;            ///< the step size
  double keep_mean = 0.9;      ///< b1: decay of the mean of gradients
  double keep_square = 0.999;  ///< b2: decay of the mean of their squares
  double epsilon = 1e-8;       ///< prevents division by 0
  double weight_decay = 0;     ///< fraction of a parameter subtracted per unit of rate

  /// The state carried from step to step.
  template <class Tree> struct State {
    Tree mean;    ///< running mean of the gradients
    Tree square;  ///< running mean of the squared gradients
    Array steps;  ///< number of completed steps, int32
  };
  /// The state before the first step.
  template <class Tree> State<Tree> start(const Tree& parameters) const {
    return {zeros_like_tree(parameters), zeros_like_tree(parameters), zeros({}, int32)};
  }
  /// The parameters and the state after one more step.
  template <class Tree> std::pair<Tree, State<Tree>> update(const Tree& gradients, const State<Tree>& state,
                                                            const Tree& parameters) const;
};
/// @}

/// A training step for compilation: (parameters, state, data...) -> tuple{parameters, state, value} with the
/// loss before the step. loss(parameters, data...) is a scalar. With largest_norm > 0 gradients are first
/// clipped to that global norm.
template <class Optimizer, class Loss>
auto train_step(Optimizer optimizer, Loss loss, double largest_norm = 0) {
  return [=](const auto& parameters, const auto& state, const auto&... data) {
    auto [value, gradients] = value_and_grad(loss)(parameters, data...);
    if (largest_norm > 0) gradients = clip_by_global_norm(gradients, largest_norm);
    auto [next, next_state] = optimizer.update(gradients, state, parameters);
    return std::tuple{next, next_state, value};
  };
}

template <class Tree> std::pair<Tree, Sgd::State<Tree>> Sgd::update(const Tree& gradients,
                                                                    const State<Tree>& state,
                                                                    const Tree& parameters) const {
  const Array now = rate(state.steps);
  const auto descend = [&](const Array& p, const Array& g) { return p - astype(now * g, p.dtype()); };
  if (!state.velocity) return {tree_map(descend, parameters, gradients), {std::nullopt, state.steps + 1}};
  const auto keep = [&](const Array& v, const Array& g) { return momentum * v + g; };
  const Tree velocity = tree_map(keep, *state.velocity, gradients);
  const Tree ahead = nesterov ? tree_map(keep, velocity, gradients) : velocity;
  return {tree_map(descend, parameters, ahead), {velocity, state.steps + 1}};
}

template <class Tree> std::pair<Tree, Adam::State<Tree>> Adam::update(const Tree& gradients,
                                                                      const State<Tree>& state,
                                                                      const Tree& parameters) const {
  const Array now = rate(state.steps), steps = state.steps + 1;
  const auto mean_of = [](double keep) {
    return [keep](const Array& m, const Array& g) { return keep * m + (1 - keep) * g; };
  };
  const Tree mean = tree_map(mean_of(keep_mean), state.mean, gradients);
  const Tree square = tree_map(
      [&](const Array& s, const Array& g) { return mean_of(keep_square)(s, tessera::square(abs(g))); },
      state.square, gradients);
  const auto next = [&](const Array& p, const Array& m, const Array& s) {
    // In 16 bits 1 - 0.999 would be 0.
    const Dtype real = real_dtype(p.dtype()), wide = real == float64 ? real : float32;
    const auto unbiased = [&](const Array& x, double keep) {
      return x / astype(1 - power(keep, astype(steps, wide)), real);
    };
    const Array unbiased_mean = unbiased(m, keep_mean), unbiased_square = unbiased(s, keep_square);
    Array change = unbiased_mean / (sqrt(unbiased_square) + epsilon);
    if (weight_decay != 0) change = change + weight_decay * p;
    return p - astype(now * change, p.dtype());
  };
  return {tree_map(next, parameters, mean, square), {mean, square, steps}};
}

}  // namespace tessera::optim
