// Draws of bfloat16 and float16, compared with the bits of JAX 0.10 for key(42).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/ops.hpp>
#include <tessera/random.hpp>

#include <bit>

namespace tessera::test {
namespace {

using testing::ElementsAre;

template <class T> std::vector<int> bits_of(const Array& x) {
  std::vector<int> bits;
  for (const T v : to_vector<T>(x)) bits.push_back(v.bits());
  return bits;
}
const random::Key& key() {
  static const random::Key k = random::key(42);
  return k;
}

TEST(RandomHalves, uniform_draws_are_those_of_jax) {
  EXPECT_THAT(bits_of<bfloat16_t>(random::uniform(key(), {6}, bfloat16)),
              ElementsAre(0x3f22, 0x3f58, 0x3f78, 0x3f56, 0x3da0, 0x3f58));
  EXPECT_THAT(bits_of<float16_t>(random::uniform(key(), {6}, float16)),
              ElementsAre(0x2ce0, 0x3218, 0x3bce, 0x3a0e, 0x3730, 0x34ec));
  EXPECT_THAT(bits_of<bfloat16_t>(random::uniform(key(), {6}, bfloat16, -3, 5)),
              ElementsAre(0x4004, 0x4070, 0x4098, 0x406c, 0xc018, 0x4070));
  EXPECT_THAT(bits_of<float16_t>(random::uniform(key(), {6}, float16, -3, 5)),
              ElementsAre(0xc0c8, 0xbde8, 0x44ce, 0x421c, 0x38c0, 0xb850));
}

TEST(RandomHalves, normal_draws_are_those_of_jax) {
  EXPECT_THAT(bits_of<bfloat16_t>(random::normal(key(), {6}, bfloat16)),
              ElementsAre(0x3eb0, 0x3f82, 0x3ff2, 0x3f7c, 0xbfb4, 0x3f82));
  EXPECT_THAT(bits_of<float16_t>(random::normal(key(), {6}, float16)),
              ElementsAre(0xbdb8, 0xbb01, 0x3fe6, 0x3993, 0xb011, 0xb804));
}

TEST(RandomHalves, other_distributions_are_those_of_jax) {
  EXPECT_THAT(bits_of<bfloat16_t>(random::exponential(key(), {6}, bfloat16)),
              ElementsAre(0x3f80, 0x3fee, 0x405e, 0x3fe7, 0x3da7, 0x3fee));
  EXPECT_THAT(bits_of<float16_t>(random::exponential(key(), {6}, float16)),
              ElementsAre(0x2d12, 0x32c3, 0x436d, 0x3da8, 0x38c5, 0x35e2));
  EXPECT_THAT(bits_of<bfloat16_t>(random::gumbel(key(), {6}, bfloat16)),
              ElementsAre(0x3f48, 0x3fe3, 0x405d, 0x3fdc, 0xbf6f, 0x3fe3));
  EXPECT_THAT(bits_of<float16_t>(random::gumbel(key(), {6}, float16)),
              ElementsAre(0xbb90, 0xb80c, 0x4366, 0x3d1d, 0x3321, 0xb143));
  EXPECT_THAT(to_vector<int>(random::bernoulli(key(), full({}, 0.3, bfloat16), Shape{12})),
              ElementsAre(0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0));
  EXPECT_THAT(to_vector<int>(random::bernoulli(key(), full({}, 0.3, float16), Shape{12})),
              ElementsAre(1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1));
}

TEST(RandomHalves, do_not_depend_on_the_sharding) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  for (const Dtype dtype : {bfloat16, float16}) {
    const Array whole = random::normal(key(), {31, 7}, dtype);
    const Array split = device_put(random::normal(key(), {31, 7}, dtype), NamedSharding(mesh, P("x")));
    EXPECT_EQ(to_vector<float>(split), to_vector<float>(whole));
    EXPECT_NEAR(item<double>(mean(random::uniform(key(), {5000}, dtype))), 0.5, 0.02);
  }
}

}  // namespace
}  // namespace tessera::test
