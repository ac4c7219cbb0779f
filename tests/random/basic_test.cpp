#include <gtest/gtest.h>

#include <tessera/ops.hpp>
#include <tessera/random.hpp>
#include <tessera/runtime.hpp>
#include <tessera/tree.hpp>

using namespace tessera;

TEST(random, golden_values_of_key_0) {
  const auto key = random::key(0);
  EXPECT_EQ(to_vector<std::uint32_t>(random::bits(key, {8})),
            (std::vector<std::uint32_t>{4070199207, 4202968722, 1427181096, 2012915765, 2447653815, 710830403, 1332275837, 2961296638}));
  EXPECT_EQ(to_vector<int>(random::randint(key, {8}, 0, 100)), (std::vector<int>{89, 0, 12, 73, 71, 47, 32, 23}));
  EXPECT_EQ(to_vector<int>(random::randint(key, {8}, -5, 5)), (std::vector<int>{4, -5, -3, -2, -4, 2, -3, -2}));
  EXPECT_EQ(to_vector<bool>(random::bernoulli(key, 0.3, {8})), (std::vector<bool>{false, false, false, false, false, true, false, false}));
  const auto keys = random::split(key, 4);
  EXPECT_EQ(to_vector<std::uint32_t>(random::key_data(keys[3])), (std::vector<std::uint32_t>{2467461003u, 3840466878u}));
  EXPECT_EQ(to_vector<std::uint32_t>(random::key_data(random::fold_in(key, 7))), (std::vector<std::uint32_t>{2716826189u, 292468403u}));
  const auto u = to_vector<float>(random::uniform(key, {4}));
  EXPECT_FLOAT_EQ(u[0], 0.947667003f);
  const auto n = to_vector<float>(random::normal(key, {4}));
  EXPECT_FLOAT_EQ(n[1], 2.02526474f);
  EXPECT_EQ(tree_leaves(key).size(), 1u);
}

TEST(random, sharded_draw_is_the_same) {
  const auto key = random::key(0);
  const auto mesh = make_mesh({device_count()}, {"x"});
  const Array x = device_put(random::normal(key, {10, 7}), mesh, P("x", None)), y = random::normal(key, {10, 7});
  EXPECT_EQ(to_vector<float>(x), to_vector<float>(y));
}
