// Arguments that random functions refuse, and the error texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/ops.hpp>
#include <tessera/random.hpp>
#include <tessera/tree.hpp>

#include "support/layouts.hpp"

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const random::Key& some_key() {
  static const random::Key key = random::key(0);
  return key;
}

TEST(random_errors, a_batch_of_keys_is_for_vmap) {
  const auto keys = random::split_batch(some_key(), {3});
  EXPECT_THAT(error_of<ShapeError>([&] { random::uniform(keys, {2}); }),
              AllOf(HasSubstr("uniform"), HasSubstr("(3,)"), HasSubstr("vmap")));
  EXPECT_THAT(error_of<ShapeError>([&] { random::split(keys); }), HasSubstr("vmap"));
  EXPECT_THAT(error_of<ShapeError>([&] { random::fold_in(keys, 1); }), HasSubstr("vmap"));
  EXPECT_THAT(error_of<ShapeError>([&] { random::gamma(keys, 1.0); }), HasSubstr("vmap"));
}

TEST(random_errors, a_key_is_two_words) {
  EXPECT_THAT(error_of<ArgumentError>([] { random::wrap_key_data(zeros({2})); }), HasSubstr("float32"));
  EXPECT_THAT(error_of<ArgumentError>([] { random::wrap_key_data(zeros({3}, uint32)); }), HasSubstr("(3,)"));
  EXPECT_THAT(error_of<DtypeError>([] { random::normal(random::Key{zeros({2})}); }),
              HasSubstr("random::key(seed)"));
  EXPECT_THAT(error_of<ArgumentError>([] { random::normal(random::Key{}); }), HasSubstr("holds nothing"));
}

TEST(random_errors, dtypes_that_cannot_be_drawn) {
  EXPECT_THAT(error_of<DtypeError>([] { random::bits(some_key(), {2}, int32); }),
              AllOf(HasSubstr("uint32"), HasSubstr("int32")));
  EXPECT_THAT(error_of<DtypeError>([] { random::uniform(some_key(), {2}, int32); }),
              HasSubstr("float32, float64, bfloat16 or float16"));
  EXPECT_THAT(error_of<DtypeError>([] { random::normal(some_key(), {2}, int32); }), HasSubstr("complex64"));
  EXPECT_THAT(error_of<DtypeError>([] { random::randint(some_key(), {2}, 0, 3, float32); }),
              HasSubstr("integers"));
  EXPECT_THAT(error_of<DtypeError>([] { random::gumbel(some_key(), {2}, complex64); }), HasSubstr("gumbel"));
  EXPECT_THAT(error_of<DtypeError>([] { random::bernoulli(some_key(), array({1, 2})); }), HasSubstr("int32"));
  EXPECT_THAT(error_of<DtypeError>([] { random::poisson(some_key(), 3.0, {}, float32); }),
              HasSubstr("integers"));
  EXPECT_THAT(error_of<DtypeError>([] { random::geometric(some_key(), 0.5, {}, float32); }),
              HasSubstr("integers"));
  EXPECT_THAT(error_of<DtypeError>([] { random::fold_in(some_key(), 1.5); }), HasSubstr("integer"));
  EXPECT_THAT(error_of<DtypeError>([] { random::pareto(some_key(), ones({2}, float64)); }),
              AllOf(HasSubstr("float64"), HasSubstr("astype")));
}

TEST(random_errors, shapes_that_do_not_fit) {
  EXPECT_THAT(error_of<ShapeError>([] { random::uniform(some_key(), {2, -1}); }), HasSubstr("(2, -1)"));
  EXPECT_THAT(error_of<ShapeError>([] { random::bernoulli(some_key(), full({3}, 0.5), Shape{2}); }),
              AllOf(HasSubstr("(3,)"), HasSubstr("(2,)")));
  EXPECT_THAT(error_of<ShapeError>([] {
                random::gamma(some_key(), ones({4, 3}), Shape{3});
              }),
              AllOf(HasSubstr("(4, 3)"), HasSubstr("(3,)")));
  EXPECT_THAT(error_of<ShapeError>([] { random::dirichlet(some_key(), 1.0); }), HasSubstr("categories"));
  EXPECT_THAT(error_of<ShapeError>([] { random::fold_in(some_key(), arange(3)); }),
              AllOf(HasSubstr("(3,)"), HasSubstr("vmap")));
  EXPECT_THAT(error_of<ArgumentError>([] { random::split(some_key(), -1); }), HasSubstr("-1"));
}

TEST(random, a_key_is_a_tree_of_one_array) {
  const auto leaves = tree_leaves(std::vector<random::Key>{random::key(1), random::key(2)});
  ASSERT_EQ(leaves.size(), 2U);
  EXPECT_EQ(to_vector<std::uint32_t>(leaves[1]), (std::vector<std::uint32_t>{0, 2}));
}

TEST(random, draws_of_equal_keys_are_equal_and_of_others_differ) {
  const auto a = to_vector<float>(random::normal(random::key(7), {100})),
             b = to_vector<float>(random::normal(random::key(7), {100}));
  EXPECT_EQ(a, b);
  const auto keys = random::split(random::key(7));
  EXPECT_NE(to_vector<float>(random::normal(keys[0], {100})),
            to_vector<float>(random::normal(keys[1], {100})));
}

TEST(random, a_scope_chooses_the_counters_and_gives_back_what_was) {
  const auto bits_now = [] { return to_vector<std::uint32_t>(random::bits(some_key(), {3})); };
  const auto before = bits_now();
  {
    random::ThreefryScope scope(random::Threefry::original);
    EXPECT_NE(bits_now(), before);
    EXPECT_EQ(random::threefry(), random::Threefry::original);
  }
  EXPECT_EQ(bits_now(), before);
}

}  // namespace
}  // namespace tessera::test
