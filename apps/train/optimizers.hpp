// Optimizers as functions on trees: start(parameters) -> state, and update(gradients, state, parameters) ->
// {parameters, state}. States lie where the parameters lie.
#pragma once
#include <tessera/tessera.hpp>

#include <utility>

namespace train {

using namespace tessera;

template <class Tree> Tree zeros_of(const Tree& tree) {
  return tree_map(
      [](const Array& x) {
        return x.is_committed() ? device_put(zeros_like(x), x.sharding()) : zeros_like(x);
      },
      tree);
}

struct Sgd {
  double rate = 0.1;
  template <class Tree> struct State {};
  template <class Tree> State<Tree> start(const Tree&) const { return {}; }
  template <class Tree> std::pair<Tree, State<Tree>> update(const Tree& gradients, const State<Tree>&,
                                                            const Tree& parameters) const {
    return {tree_map([&](const Array& p, const Array& g) { return p - rate * g; }, parameters, gradients),
            {}};
  }
};

// Polyak's heavy ball.
struct Momentum {
  double rate = 0.1, keep = 0.9;
  template <class Tree> struct State { Tree velocity; };
  template <class Tree> State<Tree> start(const Tree& parameters) const { return {zeros_of(parameters)}; }
  template <class Tree> std::pair<Tree, State<Tree>> update(const Tree& gradients, const State<Tree>& state,
                                                            const Tree& parameters) const {
    const Tree velocity =
        tree_map([&](const Array& v, const Array& g) { return keep * v + g; }, state.velocity, gradients);
    return {tree_map([&](const Array& p, const Array& v) { return p - rate * v; }, parameters, velocity),
            {velocity}};
  }
};

// Kingma and Ba 2015, Algorithm 1.
struct Adam {
  double rate = 1e-3, keep_mean = 0.9, keep_square = 0.999, epsilon = 1e-8;
  template <class Tree> struct State {
    Tree mean, square;
    Array steps;
  };
  template <class Tree> State<Tree> start(const Tree& parameters) const {
    return {zeros_of(parameters), zeros_of(parameters), zeros({}, float32)};
  }
  template <class Tree> std::pair<Tree, State<Tree>> update(const Tree& gradients, const State<Tree>& state,
                                                            const Tree& parameters) const {
    const Array steps = state.steps + 1;
    const Tree mean =
        tree_map([&](const Array& m, const Array& g) { return keep_mean * m + (1 - keep_mean) * g; },
                 state.mean, gradients);
    const Tree square =
        tree_map([&](const Array& s, const Array& g) { return keep_square * s + (1 - keep_square) * g * g; },
                 state.square, gradients);
    const Array mean_share = 1 - power(keep_mean, steps), square_share = 1 - power(keep_square, steps);
    const Tree next = tree_map(
        [&](const Array& p, const Array& m, const Array& s) {
          return p - rate * (m / mean_share) / (sqrt(s / square_share) + epsilon);
        },
        parameters, mean, square);
    return {next, {mean, square, steps}};
  }
};

// A training step to be compiled: {parameters, state, loss} after one batch.
template <class Optimizer, class Loss> auto step_of(Optimizer optimizer, Loss loss) {
  return [=](const auto& parameters, const auto& state, const Array& x, const Array& y) {
    const auto [value, gradients] = value_and_grad(loss)(parameters, x, y);
    auto [next, next_state] = optimizer.update(gradients, state, parameters);
    return std::tuple{next, next_state, value};
  };
}

}  // namespace train
