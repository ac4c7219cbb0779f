// Traffic of gradients on a mesh: one all-reduce per replicated parameter for a split batch, and none that
// split parameters do not need.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/tessera.hpp>

#include <cmath>

namespace tessera {
namespace {

using Params = std::vector<std::pair<Array, Array>>;

Params layers(const std::vector<std::int64_t>& sizes) {
  Params params;
  const auto keys = random::split(random::key(0), static_cast<int>(sizes.size()));
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i)
    params.emplace_back(
        random::normal(keys[i], {sizes[i], sizes[i + 1]}) / std::sqrt(static_cast<float>(sizes[i])),
        zeros({sizes[i + 1]}));
  return params;
}

Array loss(const Params& params, const Array& x, const Array& y) {
  Array h = x;
  for (std::size_t i = 0; i < params.size(); ++i) {
    h = matmul(h, params[i].first) + params[i].second;
    if (i + 1 < params.size()) h = relu(h);
  }
  return mean(sum(square(h - y), -1));
}

struct Problem {
  Mesh mesh;
  Array x, y;
  Params params;
};
Problem on(const Mesh& mesh, PartitionSpec batch) {
  const auto keys = random::split(random::key(1), 2);
  Params params = layers({12, 16, 16, 10});
  for (auto& [w, b] : params) w = device_put(w, mesh, P()), b = device_put(b, mesh, P());
  return {mesh, device_put(random::normal(keys[0], {36, 12}), mesh, batch),
          device_put(random::normal(keys[1], {36, 10}), mesh, batch), params};
}

TEST(DataParallel, one_parameter_costs_one_all_reduce) {
  const Mesh mesh = make_mesh({device_count()}, {"batch"});
  const Array w = device_put(ones({6, 5}), mesh, P()), x = device_put(ones({13, 6}), mesh, P("batch"));
  const auto plan =
      explain(grad([](const Array& w, const Array& x) { return sum(tanh(matmul(x, w))); }), w, x);
  EXPECT_EQ(plan.calls("all-reduce"), device_count() > 1 ? 1 : 0);
  EXPECT_EQ(plan.calls(), plan.calls("all-reduce"));
}

TEST(DataParallel, gradients_of_products_are_products_without_transpositions) {
  const auto f = [](const Array& a, const Array& b) { return sum(sin(matmul(a, b))); };
  const auto plain = jit(grad<0, 1>(f)).lower(ones({5, 3}), ones({3, 4})).compile().as_text();
  EXPECT_THAT(plain, testing::Not(testing::HasSubstr(" transpose("))) << plain;
  const auto batched = jit(grad<0, 1>(f)).lower(ones({2, 5, 3}), ones({2, 3, 4})).compile().as_text();
  EXPECT_THAT(batched, testing::Not(testing::HasSubstr(" transpose("))) << batched;
}

TEST(DataParallel, gradients_are_all_that_travels) {
  const auto p = on(make_mesh({device_count()}, {"batch"}), P("batch"));
  const auto plan = explain(grad(loss), p.params, p.x, p.y);
  EXPECT_EQ(plan.calls(), plan.calls("all-reduce"));
  EXPECT_LE(plan.calls(), 6);  // one per parameter; fewer if reductions are combined
  std::int64_t parameter_bytes = 0;
  for (const auto& [w, b] : p.params) parameter_bytes += w.nbytes() + b.nbytes();
  EXPECT_LE(plan.bytes(), 2 * parameter_bytes);
  debug::CommStats stats;
  eval(grad(loss)(p.params, p.x, p.y));
  EXPECT_LE(stats.calls(), 6);
}

TEST(TensorParallel, a_split_layer_pair_needs_only_what_its_products_need) {
  const int n = device_count();
  const Mesh mesh = make_mesh({n}, {"model"});
  auto p = on(mesh, P());
  p.params[1].first = device_put(p.params[1].first, mesh, P(None, "model"));
  p.params[1].second = device_put(p.params[1].second, mesh, P("model"));
  p.params[2].first = device_put(p.params[2].first, mesh, P("model", None));
  const auto plan = explain(grad(loss), p.params, p.x, p.y);
  // Forward: the sum over the split inner dim. Backward: the cotangent of the split pair's operand.
  EXPECT_LE(plan.calls(), n > 1 ? 2 : 0) << to_string(plan);
  EXPECT_EQ(plan.calls("all-gather"), 0) << to_string(plan);
  const auto g = grad(loss)(p.params, p.x, p.y);
  for (std::size_t i = 0; i < g.size(); ++i) {
    EXPECT_EQ(g[i].first.sharding(), p.params[i].first.sharding());
    EXPECT_EQ(g[i].second.sharding(), p.params[i].second.sharding());
  }
}

TEST(AnyMesh, the_loss_curve_is_the_same) {
  const auto curve = [](Params params, const Array& x, const Array& y) {
    const auto step = jit([](const Params& params, const Array& x, const Array& y) {
      const auto [value, g] = value_and_grad(loss)(params, x, y);
      Params next;
      for (std::size_t i = 0; i < params.size(); ++i)
        next.emplace_back(params[i].first - 0.05f * g[i].first, params[i].second - 0.05f * g[i].second);
      return std::pair{next, value};
    });
    std::vector<float> losses;
    for (int i = 0; i < 5; ++i) {
      auto [next, value] = step(params, x, y);
      params = next;
      losses.push_back(item<float>(value));
    }
    return losses;
  };
  const auto keys = random::split(random::key(1), 2);
  const auto expected =
      curve(layers({12, 16, 16, 10}), random::normal(keys[0], {36, 12}), random::normal(keys[1], {36, 10}));
  EXPECT_LT(expected[4], expected[0]);
  const auto data = on(make_mesh({device_count()}, {"batch"}), P("batch"));
  EXPECT_THAT(curve(data.params, data.x, data.y), testing::Pointwise(testing::FloatNear(1e-4f), expected));
  if (device_count() % 2 != 0) return;
  auto both = on(make_mesh({device_count() / 2, 2}, {"batch", "model"}), P("batch"));
  both.params[1].first = device_put(both.params[1].first, both.mesh, P(None, "model"));
  both.params[1].second = device_put(both.params[1].second, both.mesh, P("model"));
  both.params[2].first = device_put(both.params[2].first, both.mesh, P("model", None));
  EXPECT_THAT(curve(both.params, both.x, both.y), testing::Pointwise(testing::FloatNear(1e-4f), expected));
}

}  // namespace
}  // namespace tessera
