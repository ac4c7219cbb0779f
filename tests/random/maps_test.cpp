// Keys are arrays: draws under vmap, shard_map, pmap, jit and grad.
#include <gtest/gtest.h>

#include <tessera/tessera.hpp>

#include "support/layouts.hpp"

namespace tessera::test {
namespace {

using random::Key;

std::vector<float> joined(const std::vector<Array>& parts) {
  std::vector<float> all;
  for (const auto& part : parts)
    for (const float v : to_vector<float>(part)) all.push_back(v);
  return all;
}

TEST(random_maps, vmap_over_keys_draws_with_each) {
  const auto draw = [](const Key& k) { return random::normal(k, {3, 2}) + random::gamma(k, 0.5, {2}); };
  const Key keys = random::split_batch(random::key(1), {5});
  std::vector<Array> separate;
  for (const auto& k : random::split(random::key(1), 5)) separate.push_back(draw(k));
  EXPECT_EQ(to_vector<float>(vmap(draw)(keys)), joined(separate));
}

TEST(random_maps, vmap_splits_folds_and_counts_rounds_per_key) {
  const auto draw = [](const Key& k) {
    const auto inner = random::split(k, 3);
    const Array counts = random::poisson(random::fold_in(inner[1], 9), 20.0, {4});
    return counts + random::binomial(inner[2], 50, 0.5, {4}) + random::permutation(inner[0], 4);
  };
  const Key keys = random::split_batch(random::key(2), {6});
  std::vector<Array> separate;
  for (const auto& k : random::split(random::key(2), 6)) separate.push_back(draw(k));
  EXPECT_EQ(to_vector<float>(vmap(draw)(keys)), joined(separate));
}

TEST(random_maps, vmap_over_data_folds_each_into_one_key) {
  const auto draw = [](const Array& i) { return random::uniform(random::fold_in(random::key(3), i), {4}); };
  std::vector<Array> separate;
  for (int i = 0; i < 5; ++i) separate.push_back(random::uniform(random::fold_in(random::key(3), i), {4}));
  EXPECT_EQ(to_vector<float>(vmap(draw)(arange(5))), joined(separate));
}

TEST(random_maps, shard_map_gives_each_device_its_own_stream) {
  const int n = device_count();
  const auto mesh = make_mesh({n}, {"x"});
  const auto draw = [](const Array& block) {
    return block + random::normal(random::fold_in(random::key(4), axis_index("x")), {2, 3});
  };
  const Array x = device_put(zeros({2 * n, 3}), mesh, P("x", None));
  const Array y = shard_map(draw, mesh, P("x", None), P("x", None))(x);
  std::vector<Array> separate;
  for (int i = 0; i < n; ++i) separate.push_back(random::normal(random::fold_in(random::key(4), i), {2, 3}));
  EXPECT_EQ(to_vector<float>(y), joined(separate));
}

TEST(random_maps, shard_map_over_keys) {
  const int n = device_count();
  const auto mesh = make_mesh({n}, {"x"});
  const Key keys = random::split_batch(random::key(5), {n});
  const auto draw = [](const Array& mine) {
    const Key k = random::wrap_key_data(mine(0));
    return expand_dims(random::uniform(k, {4}) + random::poisson(k, 15.0, {4}), 0);
  };
  const Array y = shard_map(draw, mesh, P("x", None), P("x", None))(keys.data);
  std::vector<Array> separate;
  for (const auto& k : random::split(random::key(5), n))
    separate.push_back(random::uniform(k, {4}) + random::poisson(k, 15.0, {4}));
  EXPECT_EQ(to_vector<float>(y), joined(separate));
}

TEST(random_maps, pmap_over_keys) {
  const int n = device_count();
  const Key keys = random::split_batch(random::key(6), {n});
  const auto draw = [](const Key& k) { return random::normal(k, {5}); };
  std::vector<Array> separate;
  for (const auto& k : random::split(random::key(6), n)) separate.push_back(draw(k));
  EXPECT_EQ(to_vector<float>(pmap(draw)(keys)), joined(separate));
}

TEST(random_maps, jit_with_a_key_argument) {
  const auto noisy = [](const Key& k, const Array& x) {
    const auto keys = random::split(k);
    return x + random::normal(keys[0], x.shape()) * random::bernoulli(keys[1], 0.5, x.shape());
  };
  const auto mesh = make_mesh({device_count()}, {"x"});
  const Array x = device_put(ones({10, 3}), mesh, P("x", None));
  const auto compiled = jit(noisy);
  for (const int seed : {1, 2})
    EXPECT_EQ(to_vector<float>(compiled(random::key(seed), x)),
              to_vector<float>(noisy(random::key(seed), x)));
  const auto text = compiled.lower(random::key(1), x).compile().as_text();
  for (const char* collective : {"all-gather", "all-reduce", "all-to-all", "collective-permute"})
    EXPECT_EQ(text.find(collective), std::string::npos) << text;
}

TEST(random_maps, gradients_pass_by_the_draws) {
  const auto loss = [](const Array& scale) {
    return sum(square(scale * random::normal(random::key(7), {50})));
  };
  const auto z = to_vector<double>(random::normal(random::key(7), {50}));
  double expected = 0;
  for (const double v : z) expected += 2 * 3 * v * v;
  EXPECT_NEAR(item<double>(grad(loss)(Array(3.0F) + zeros({}))), expected, 1e-4 * expected);
}

}  // namespace
}  // namespace tessera::test
