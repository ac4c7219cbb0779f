// Long computations in a ReproducibleScope: training steps and conjugate gradients, to the last bit.
#include <tessera/nn.hpp>
#include <tessera/optim.hpp>
#include <tessera/sparse/krylov.hpp>
#include <tessera/tessera.hpp>

#include <gtest/gtest.h>

#include "reproducible/bits.hpp"
#include "sparse/matrices.hpp"

namespace tessera::test {
namespace {

struct Network {
  Array w1, b1, w2, b2;
};

Network start() {
  return {random_array({37, 64}, float32, 1), zeros({64}, float32), random_array({64, 10}, float32, 2),
          zeros({10}, float32)};
}

Array loss(const Network& p, const Array& x, const Array& y) {
  const Array hidden = maximum(matmul(x, p.w1) + p.b1, 0), scores = matmul(hidden, p.w2) + p.b2;
  return -mean(sum(y * log_softmax(scores, -1), -1));
}

std::string trained(const Sharding& batch, const Sharding& parameters, int steps) {
  const optim::Adam adam{.rate = 1e-3};
  const auto step = jit(optim::train_step(adam, loss, 1.0), {.reproducible = true});
  Network p = device_put(start(), parameters);
  auto state = adam.start(p);
  const Array x = device_put(random_array({96, 37}, float32, 3), batch),
              y = device_put(softmax(random_array({96, 10}, float32, 4) * 5, -1), batch);
  Array value;
  for (int i = 0; i < steps; ++i) std::tie(p, state, value) = step(p, state, x, y);
  return bits_of(tree_leaves(p)) + bits_of(value);
}

TEST(ReproducibleTraining, ends_with_the_same_parameters_on_any_layout) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const NamedSharding whole(mesh, P()), rows(mesh, P("x"));
  const auto expected = trained(whole, whole, 200);
  EXPECT_SAME_BITS(trained(rows, whole, 200), expected, "data parallel");
  if (37 % device_count() != 0)
    EXPECT_SAME_BITS(trained(rows, rows, 20), trained(whole, whole, 20), "all split");
}

TEST(ReproducibleSolvers, take_the_same_steps_to_the_same_bits) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const std::int64_t side = 60;
  const Array b = random_array({side * side}, float64, 5);
  const auto solved = [&](const Sharding& rows, const Array& right) {
    const ReproducibleScope scope;
    const auto solution = sparse::cg(laplacian(side, rows), right, {.tol = 1e-10});
    EXPECT_TRUE(item<bool>(solution.converged));
    return bits_of(solution.x) + bits_of(solution.iterations) + bits_of(solution.residual);
  };
  const auto alone = solved(NamedSharding(mesh, P()), b);
  EXPECT_SAME_BITS(solved(NamedSharding(mesh, P("x")), device_put(b, NamedSharding(mesh, P("x")))), alone,
                   "cg");
}

}  // namespace
}  // namespace tessera::test
