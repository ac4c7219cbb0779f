// Optimizers and schedules: compared with four steps of Optax 0.2.8, on every layout.
#include <tessera/nn.hpp>
#include <tessera/optim.hpp>
#include <tessera/tessera.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/compare.hpp"

namespace tessera {
namespace {

struct Parameters {
  Array w, b;
};

Parameters start() { return {array({{1.f, -2.f}, {0.5f, 3.f}}), array({0.1f, -0.2f})}; }

Array loss(const Parameters& p) {
  return sum(square(p.w) * array({{1.f, 2.f}, {3.f, 0.5f}})) + sum(sin(p.b));
}

std::vector<double> values_of(const Parameters& p) {
  auto values = to_vector<double>(p.w);
  const auto b = to_vector<double>(p.b);
  values.insert(values.end(), b.begin(), b.end());
  return values;
}

void expect_close(const std::vector<double>& got, const std::vector<double>& wanted,
                  const std::string& what) {
  test::expect_close(array(got), wanted, 3e-6, what);
}

// Four steps from start(), replicated and split over all ranks, compiled and not.
template <class Optimizer> void expect_after_four_steps(const Optimizer& optimizer,
                                                        const std::vector<double>& wanted,
                                                        const std::string& what, double largest_norm = 0) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const auto step = optim::train_step(optimizer, loss, largest_norm);
  const auto compiled = jit(step, {.donate_argnums = {0, 1}});
  for (const P& spec : {P(), P("x")})
    for (const bool in_jit : {false, true}) {
      Parameters p = device_put(start(), NamedSharding(mesh, spec));
      auto state = optimizer.start(p);
      for (int i = 0; i < 4; ++i) {
        Array value;
        if (in_jit)
          std::tie(p, state, value) = compiled(p, state);
        else
          std::tie(p, state, value) = step(p, state);
        if (i == 0) {
          EXPECT_NEAR(item<double>(value), 14.25 + std::sin(0.1) + std::sin(-0.2), 1e-5);
        }
      }
      expect_close(values_of(p), wanted, what + (in_jit ? ", compiled" : ""));
      EXPECT_EQ(p.w.sharding(), NamedSharding(mesh, spec)) << what;
    }
}

TEST(Optimizers, sgd_descends_as_optax) {
  expect_after_four_steps(optim::Sgd{.rate = 0.1},
                          {0.40959996, -0.259200007, 0.0127999969, 1.96829998, -0.297032148, -0.57437557},
                          "sgd");
}

TEST(Optimizers, momentum_descends_as_optax) {
  expect_after_four_steps(optim::Sgd{.rate = 0.1, .momentum = 0.9},
                          {-0.308600008, 1.61999989, -0.384099931, 0.680400193, -0.789496541, -1.03859735},
                          "momentum");
  expect_after_four_steps(optim::Sgd{.rate = 0.1, .momentum = 0.9, .nesterov = true},
                          {-0.324823022, 0.700202763, -0.0315923095, 0.281663656, -1.05027139, -1.2490381},
                          "nesterov");
}

TEST(Optimizers, adam_descends_as_optax) {
  expect_after_four_steps(optim::Adam{.rate = 0.1},
                          {0.603941977, -1.6015079, 0.112918139, 2.60091662, -0.299937934, -0.599112034},
                          "adam");
  expect_after_four_steps(optim::Adam{.rate = 0.1, .weight_decay = 0.01},
                          {0.600601494, -1.59415591, 0.111622795, 2.58956552, -0.299737692, -0.597718},
                          "adamw");
}

TEST(Optimizers, adam_moves_parameters_of_16_bits) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  for (const Dtype half : {bfloat16, float16})
    for (const P& spec : {P(), P("x")}) {
      const Array p = device_put(array({1.f, -2.f, 3.f, 0.5f, 4.f}, half), mesh, spec);
      const optim::Adam adam{.rate = 0.25};
      const auto [next, state] =
          adam.update(2 * p, adam.start(p), p);  // a first step is the rate by the sign
      EXPECT_EQ(next.dtype(), half);
      EXPECT_EQ(state.square.dtype(), half);
      test::expect_close(astype(next, float32), {0.75, -1.75, 2.75, 0.25, 3.75}, 1e-2, "adam");
    }
}

TEST(Optimizers, a_rate_follows_its_schedule) {
  expect_after_four_steps(optim::Adam{.rate = optim::warmup_cosine_decay(0, 0.1, 2, 5, 0.01)},
                          {0.773410022, -1.77289963, 0.274818689, 2.77275515, -0.127526507, -0.427303046},
                          "warm-up");
}

TEST(Optimizers, gradients_are_clipped_to_their_global_norm) {
  expect_after_four_steps(optim::Sgd{.rate = 0.1},
                          {0.912207007, -1.66064298, 0.377036244, 2.86604357, 0.0547406897, -0.244354248},
                          "clipped", 1);
}

TEST(Optimizers, a_step_sends_the_gradients_and_the_loss_alone) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const nn::Mlp network = device_put(nn::mlp(random::key(0), {5, 8, 3}), NamedSharding(mesh, P()));
  const Array x = device_put(ones({11, 5}), mesh, P("x")), y = device_put(ones({11, 3}), mesh, P("x"));
  const optim::Adam adam;
  const auto mean_error = [](const nn::Mlp& layers, const Array& input, const Array& target) {
    return mean(nn::squared_error(nn::apply(layers, input), target));
  };
  const auto plan = explain(optim::train_step(adam, mean_error), network, adam.start(network), x, y);
  EXPECT_EQ(plan.calls(), plan.calls("all-reduce"));
  EXPECT_LE(plan.calls(), device_count() > 1 ? 5 : 0);
}

TEST(Schedules, are_those_of_optax) {
  const auto rates = [](const optim::Schedule& schedule) {
    std::vector<double> values;
    for (int i = 0; i < 7; ++i) values.push_back(item<double>(schedule(full({}, i))));
    return values;
  };
  expect_close(rates(optim::constant(0.3)), std::vector<double>(7, 0.3), "constant");
  expect_close(rates(optim::linear(1, 0.1, 4)), {1, 0.775, 0.55, 0.325, 0.1, 0.1, 0.1}, "linear");
  expect_close(rates(optim::cosine_decay(0.5, 4, 0.1)),
               {0.5, 0.434099048, 0.275, 0.115900978, 0.05, 0.05, 0.05}, "cosine");
  expect_close(rates(optim::exponential_decay(0.5, 3, 0.7)),
               {0.5, 0.443951994, 0.394186765, 0.35, 0.310766399, 0.275930732, 0.245}, "exponential");
  expect_close(rates(optim::exponential_decay(0.5, 3, 0.7, true)), {0.5, 0.5, 0.5, 0.35, 0.35, 0.35, 0.245},
               "staircase");
  expect_close(rates(optim::warmup_cosine_decay(0, 0.1, 2, 5, 0.01)),
               {0, 0.05, 0.1, 0.0775, 0.0325, 0.01, 0.01}, "warm-up");
  expect_close(rates(optim::join(optim::constant(1), 2, optim::linear(2, 3, 2))), {1, 1, 2, 2.5, 3, 3, 3},
               "join");
}

TEST(Schedules, refuse_lengths_that_make_no_sense) {
  EXPECT_THROW(optim::linear(1, 0, 0), ArgumentError);
  try {
    optim::warmup_cosine_decay(0, 1, 10, 10);
    ADD_FAILURE() << "nothing was raised";
  } catch (const ArgumentError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("warmup_cosine_decay at optim_test.cpp:"),
                                             testing::HasSubstr("10 of 10 steps")));
  }
}

TEST(Clipping, leaves_gradients_below_the_norm_alone) {
  const Parameters p = start();
  EXPECT_NEAR(item<double>(optim::global_norm(p)), std::sqrt(1 + 4 + 0.25 + 9 + 0.01 + 0.04), 1e-6);
  expect_close(values_of(optim::clip_by_global_norm(p, 100)), values_of(p), "kept");
  EXPECT_NEAR(item<double>(optim::global_norm(optim::clip_by_global_norm(p, 2))), 2, 1e-6);
  EXPECT_THROW(optim::clip_by_global_norm(p, 0), ArgumentError);
}

TEST(Training, learns_the_same_on_every_layout) {
  const auto keys = random::split(random::key(9), 3);
  const Array x = random::normal(keys[0], {40, 4}), y = astype(sum(x, 1) > 0, int32);
  const auto cross_entropy = [](const nn::Mlp& network, const Array& input, const Array& labels) {
    return mean(nn::softmax_cross_entropy_with_integer_labels(nn::apply(network, input), labels));
  };
  const optim::Adam adam{.rate = 0.03};
  const auto losses_on = [&](const Mesh& mesh, const P& batch) {
    nn::Mlp network = nn::split_in_pairs(nn::mlp(keys[1], {4, 8, 8, 8, 2}), mesh, "model");
    auto state = adam.start(network);
    const auto step = jit(optim::train_step(adam, cross_entropy), {.donate_argnums = {0, 1}});
    std::vector<double> losses;
    for (int epoch = 0; epoch < 4; ++epoch)
      for (const auto& [bx, by] :
           nn::shuffled_batches(random::fold_in(keys[2], epoch), std::pair{x, y}, 9, mesh, batch)) {
        Array value;
        std::tie(network, state, value) = step(network, state, bx, by);
        losses.push_back(item<double>(value));
      }
    return losses;
  };
  const int n = device_count();
  const auto by_data = losses_on(make_mesh({n, 1}, {"data", "model"}), P("data"));
  expect_close(losses_on(make_mesh({1, n}, {"data", "model"}), P()), by_data, "model-parallel");
  expect_close(losses_on(make_mesh({1, 1}, {"data", "model"}, {devices()[0]}), P()), by_data, "one device");
  EXPECT_LT(by_data.back(), 0.5 * by_data.front());
}

}  // namespace
}  // namespace tessera
