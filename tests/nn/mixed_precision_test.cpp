// Training in mixed precision: parameters, their gradients and the optimizer in float32, the network's
// arithmetic in bfloat16 or float16.
#include <tessera/nn.hpp>
#include <tessera/optim.hpp>
#include <tessera/tessera.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace tessera {
namespace {

struct Data {
  Array x, y;
};
// Samples of a smooth function of 8 numbers at 256 points, split by rows over all ranks.
Data data() {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array x = random::uniform(random::key(3), {256, 8}, float32, -1, 1);
  const Array y = sin(sum(x, 1, true) * 2) + 0.5 * x(slice(), slice(0, 1));
  return {device_put(x, mesh, P("x")), device_put(y, mesh, P("x"))};
}

// The losses of the first and of the last step.
std::pair<double, double> trained(Dtype compute) {
  const auto loss = [compute](const nn::Mlp& network, const Array& x, const Array& y) {
    const auto low = tree_map([&](const Array& w) { return astype(w, compute); }, network);
    const Array guess = nn::apply(low, astype(x, compute), [](const Array& h) { return tanh(h); });
    return mean(square(astype(guess, float32) - y));
  };
  const auto [x, y] = data();
  nn::Mlp network = nn::mlp(random::key(1), {8, 32, 32, 1});
  const optim::Adam adam{.rate = 1e-2};
  auto state = adam.start(network);
  const auto step = jit(optim::train_step(adam, loss));
  std::pair<double, double> losses;
  for (int i = 0; i < 60; ++i) {
    Array value;
    std::tie(network, state, value) = step(network, state, x, y);
    losses.second = item<double>(value);
    if (i == 0) losses.first = losses.second;
  }
  EXPECT_EQ(network[0].weight.dtype(), float32);
  return losses;
}

TEST(MixedPrecision, learns_as_float_32_does) {
  const auto [first, last] = trained(float32);
  EXPECT_LT(last, 0.3 * first);
  for (const Dtype half : {bfloat16, float16}) {
    const auto [first_half, last_half] = trained(half);
    EXPECT_NEAR(first_half, first, 0.02 * first) << name(half);
    EXPECT_NEAR(last_half, last, 0.1 * last + 0.01 * first) << name(half);
  }
}

// A data-parallel step adds float32 terms over ranks: the result is the gradient of the complete batch.
TEST(MixedPrecision, gradients_of_a_split_batch_are_those_of_the_whole_one) {
  const auto [x, y] = data();
  const Array w = random::normal(random::key(2), {8, 1});
  const auto loss = [&](const Array& x, const Array& y) {
    return [&](const Array& w) {
      return mean(square(astype(matmul(astype(x, bfloat16), astype(w, bfloat16)), float32) - y));
    };
  };
  const auto split = to_vector<float>(grad(loss(x, y))(w));
  const Array whole_x = array(to_host(x)), whole_y = array(to_host(y));
  const auto whole = to_vector<float>(grad(loss(whole_x, whole_y))(w));
  for (std::size_t i = 0; i < whole.size(); ++i)
    EXPECT_NEAR(split[i], whole[i], 0.01 * (1 + std::abs(whole[i])));
}

}  // namespace
}  // namespace tessera
