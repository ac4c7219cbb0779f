// Draws have the same values on any mesh, with any spec and number of ranks, without communication.
#include <cstring>

#include "golden.hpp"
#include "ops/rng/rng.hpp"
#include "support/layouts.hpp"
#include "types/buffer.hpp"

namespace tessera::test {
namespace {

using random::Key;

enum class Moves { nothing, a_number, elements };  // a_number: the count of rounds
struct Distribution {
  const char* name;
  std::function<Array(const Key&, const Shape&)> draw;
  Moves moves = Moves::nothing;
};
std::vector<Distribution> distributions() {
  using namespace random;
  return {
      {"bits8", [](const Key& k, const Shape& s) { return bits(k, s, uint8); }},
      {"bits16", [](const Key& k, const Shape& s) { return bits(k, s, uint16); }},
      {"bits32", [](const Key& k, const Shape& s) { return bits(k, s); }},
      {"bits64", [](const Key& k, const Shape& s) { return bits(k, s, uint64); }},
      {"uniform32", [](const Key& k, const Shape& s) { return uniform(k, s); }},
      {"uniform64", [](const Key& k, const Shape& s) { return uniform(k, s, float64, -1, 3.3); }},
      {"normal32", [](const Key& k, const Shape& s) { return normal(k, s); }},
      {"normal64", [](const Key& k, const Shape& s) { return normal(k, s, float64); }},
      {"normal complex", [](const Key& k, const Shape& s) { return normal(k, s, complex64); }},
      {"randint8", [](const Key& k, const Shape& s) { return randint(k, s, -100, 100, int8); }},
      {"randint64", [](const Key& k, const Shape& s) { return randint(k, s, 0, 1'000'000'007, int64); }},
      {"bernoulli", [](const Key& k, const Shape& s) { return bernoulli(k, 0.3, s); }},
      {"bernoulli high",
       [](const Key& k, const Shape& s) { return bernoulli(k, Array(0.3), s, Resolution::high); }},
      {"gumbel", [](const Key& k, const Shape& s) { return gumbel(k, s); }},
      {"exponential", [](const Key& k, const Shape& s) { return exponential(k, s); }},
      {"truncated_normal", [](const Key& k, const Shape& s) { return truncated_normal(k, -1, 2, s); }},
      {"split_batch", [](const Key& k, const Shape& s) { return split_batch(k, s).data; }},
      {"gamma", [](const Key& k, const Shape& s) { return gamma(k, 0.7, s); }},
      {"dirichlet",
       [](const Key& k, const Shape& s) {
         return dirichlet(k, array({0.5F, 1.0F, 3.0F}), s);
       }},
      {"poisson", [](const Key& k, const Shape& s) { return poisson(k, 12.5, s); }, Moves::a_number},
      {"binomial", [](const Key& k, const Shape& s) { return binomial(k, 100, 0.4, s); }, Moves::a_number},
      {"permutation", [](const Key& k, const Shape& s) { return permutation(k, s.elements()); },
       Moves::elements},
      {"permutation of rows",
       [](const Key& k, const Shape& s) { return permutation(k, bits(key(1), s), s.ndim() - 1); },
       Moves::elements},
      {"independent permutations",
       [](const Key& k, const Shape& s) { return permutation(k, normal(key(1), s, complex128), 0, true); },
       Moves::elements},
      {"choice",
       [](const Key& k, const Shape& s) {
         return choice(k, normal(key(1), {9, 2}), s);
       },
       Moves::elements},
      {"choice by p",
       [](const Key& k, const Shape& s) {
         return choice(k, 4, s, true, array({0.1F, 0.2F, 0.3F, 0.4F}));
       },
       Moves::elements},
      {"categorical",
       [](const Key& k, const Shape& s) {
         return categorical(k, array({0.0F, 1.0F, -1.0F}), -1, s);
       }},
      {"multivariate_normal of 2",
       [](const Key& k, const Shape& s) {
         return multivariate_normal(k, array({1.0F, 2.0F}), array({{2.0F, 0.5F}, {0.5F, 1.0F}}), s);
       }},
      {"multivariate_normal of 5",
       [](const Key& k, const Shape& s) { return multivariate_normal(k, zeros({5}), eye(5) + 0.3F, s); }},
  };
}

std::string bytes_of(const Array& x) {
  const HostArray host = to_host(x);
  return {reinterpret_cast<const char*>(host.bytes()), static_cast<std::size_t>(host.nbytes())};
}

// Drawn on one device: the values that all layouts must give.
TEST(random_layouts, every_mesh_and_spec_gives_the_same_bits) {
  std::mt19937 random(5);
  const std::vector<Shape> shapes = {{24}, {5}, {7, 5}, {1, 3}, {2, 3, 4}, {0, 3}, {33, 65}};
  for (const auto& d : distributions())
    for (const auto mode : {random::Threefry::partitionable, random::Threefry::original}) {
      random::ThreefryScope scope(mode);
      for (const auto& shape : shapes) {
        const auto key = random::key(static_cast<std::int64_t>(random()));
        const std::string expected = bytes_of(d.draw(key, shape));
        for (int trial = 0; trial < 2; ++trial) {
          const Mesh mesh = random_mesh(random);
          const Array x = d.draw(key, shape);
          const auto sharding = random_sharding(random, mesh, x.ndim());
          ASSERT_EQ(bytes_of(device_put(x, sharding)), expected)
              << d.name << " " << to_string(shape) << " in " << text_of(sharding);
        }
      }
    }
}

TEST(random_layouts, draws_move_nothing_and_hold_only_their_block) {
  const int n = device_count();
  const auto mesh = make_mesh({n}, {"x"});
  for (const auto& d : distributions()) {
    if (d.moves == Moves::elements) continue;
    const Shape shape{8 * n, 1000};
    const auto text = program_of(device_put(d.draw(random::key(1), shape), mesh, P("x", None)));
    if (n == 1) continue;
    EXPECT_EQ(text.find("all-gather"), std::string::npos) << d.name << "\n" << text;
    EXPECT_EQ(text.find("all-to-all"), std::string::npos) << d.name << "\n" << text;
    EXPECT_EQ(text.find("collective-permute"), std::string::npos) << d.name << "\n" << text;
    EXPECT_EQ(text.find("all-reduce") != std::string::npos, d.moves == Moves::a_number) << d.name << "\n"
                                                                                        << text;
    EXPECT_EQ(text.find("[" + std::to_string(8 * n) + ",1000"), std::string::npos) << d.name << "\n" << text;
  }
}

TEST(random_layouts, a_draw_that_is_placed_in_the_same_expression_takes_one_block_of_memory) {
  const int n = device_count();
  const auto mesh = make_mesh({n}, {"x"});
  const std::int64_t rows = 256, block = rows * 1024 * 4;
  reset_peak_memory();
  const auto before = memory_use().live_bytes;
  eval({device_put(random::normal(random::key(8), {rows * n, 1024}), mesh, P("x", None))});
  EXPECT_LT(memory_use().peak_bytes - before, block + block / 4);
}

TEST(random_layouts, a_split_array_is_shuffled_where_it_lies) {
  const int n = device_count();
  const auto mesh = make_mesh({n}, {"x"});
  const std::int64_t size = 1000 * n + 1;
  const Array x = device_put(arange(static_cast<int>(size)), mesh, P("x"));
  const Array shuffled = random::permutation(random::key(6), x);
  EXPECT_TRUE(shuffled.sharding().is_equivalent_to(x.sharding(), 1));
  EXPECT_EQ(bytes_of(shuffled), bytes_of(random::permutation(random::key(6), size)));
  if (n == 1) return;
  const auto text = program_of(random::permutation(random::key(6), x));
  EXPECT_EQ(text.find("all-gather"), std::string::npos) << text;
  for (const char* dtype : {"= s32[", "= u32["})
    EXPECT_EQ(text.find(dtype + std::to_string(size) + "]"), std::string::npos) << text;
}

TEST(random_layouts, few_choices_are_the_first_of_a_permutation) {
  const int ranks = device_count();
  const auto mesh = make_mesh({ranks}, {"x"});
  for (const std::int64_t n : {64, 127, 1625, 1700, 5001})
    for (const std::int64_t draws : {std::int64_t{1}, n / 64, n / 64 + 1}) {
      const auto key = random::key(n + draws);
      const Array shuffled = random::permutation(key, n);
      const std::string expected = bytes_of(index(shuffled, {slice(0, draws)}));
      EXPECT_EQ(bytes_of(random::choice(key, Array(static_cast<int>(n)), {draws}, false)), expected) << n;
      const Array line = device_put(arange(static_cast<int>(n)), mesh, P("x"));
      EXPECT_EQ(bytes_of(random::choice(key, line, {draws}, false)), expected) << n;
      const Array columns = device_put(stack({line * 2, line}, 0), mesh, P(None, "x")),
                  chosen = random::choice(key, columns, {draws}, false, {}, 1);
      EXPECT_EQ(bytes_of(index(chosen, {IndexPart(1)})), expected) << n;
    }
}

TEST(random_layouts, a_draw_takes_the_layout_of_what_it_meets) {
  const int n = device_count();
  const auto mesh = make_mesh({n}, {"x"});
  const Array x = device_put(zeros({3 * n + 1, 4}), mesh, P("x", None));
  const Array y = x + random::normal(random::key(3), {3 * n + 1, 4});
  EXPECT_EQ(y.sharding().spec(), P("x", None));
  EXPECT_EQ(bytes_of(y), bytes_of(random::normal(random::key(3), {3 * n + 1, 4}) + 0.0F));
}

TEST(random_layouts, a_committed_batch_of_keys_draws_where_the_keys_lie) {
  const int n = device_count();
  const auto mesh = make_mesh({n}, {"x"});
  const Key keys = random::split_batch(random::key(4), {2 * n + 1});
  const Array draws = rng::normal(device_put(keys.data, mesh, P("x", None)), {3, 2}, float32,
                                  kernels::after_minus_one(float32), 1, rng::Threefry::partitionable);
  EXPECT_EQ(draws.shape(), (Shape{2 * n + 1, 3, 2}));
  EXPECT_EQ(draws.sharding().spec(), P("x", None, None));
  const auto separate = random::split(random::key(4), 2 * n + 1);
  const auto all = to_vector<float>(draws);
  for (int i = 0; i < 2 * n + 1; ++i) {
    const auto one = to_vector<float>(random::normal(separate[i], {3, 2}));
    EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + 6 * i)) << i;
  }
}

}  // namespace
}  // namespace tessera::test
