// Reshapes of split dims: the elements stay in order and nobody gathers, also where blocks are uneven.
#include "comm/watch/traffic.hpp"
#include "support/layouts.hpp"

namespace tessera::test {
namespace {

struct Case {
  Shape from, to;
};

TEST(Reshape, OfAnyShardingKeepsTheOrder) {
  std::mt19937 random(5);
  const std::vector<Case> cases{{{7, 4}, {28}},       {{28}, {7, 4}},
                                {{3, 8}, {24}},       {{13, 6}, {26, 3}},
                                {{26, 3}, {13, 6}},   {{6, 4}, {4, 6}},
                                {{10, 9}, {6, 15}},   {{1, 7, 4}, {28, 1}},
                                {{7, 3, 5}, {7, 15}}, {{5, 7, 2}, {5, 14}},
                                {{5, 14}, {35, 2}},   {{9, 7, 2}, {3, 3, 14}},
                                {{2, 9}, {1, 18}},    {{11, 2, 13}, {2, 11, 13}}};
  for (int round = 0; round < 6; ++round)
    for (const auto& [from, to] : cases) {
      const Sharding sharding = random_sharding(random, random_mesh(random), from.ndim());
      const Array x =
          device_put(make(from, float32, [&](const Position& at) { return flat(at, from); }), sharding);
      const auto y = to_vector<float>(reshape(x, to));
      for (std::size_t i = 0; i < y.size(); ++i)
        ASSERT_EQ(y[i], static_cast<float>(i)) << to_string(from) << " -> " << to_string(to) << " at " << i;
    }
}

TEST(Reshape, OfUnevenRowsSendsNeighboursWhatIsApart) {
  const int p = device_count();
  const Mesh mesh = make_mesh({p}, {"x"});
  const std::vector<Case> cases{
      {{1797, 64}, {1797 * 64}}, {{1797 * 64}, {1797, 64}}, {{1797, 8, 8}, {3594, 32}}, {{90, 40}, {40, 90}}};
  for (const auto& [from, to] : cases) {
    const Array x = device_put(reshape(arange(from.elements()), from), mesh, P("x"));
    eval({x});
    const auto gathers = comm::traffic("all-gather").calls, before = comm::traffic().bytes;
    const Array y = reshape(x, to);
    eval({y});
    EXPECT_EQ(comm::traffic("all-gather").calls, gathers) << to_string(from) << " -> " << to_string(to);
    const std::int64_t block = x.sharding().shard_shape(from).elements() * 8;
    EXPECT_LE(comm::traffic().bytes - before, 3 * block);
    if (p > 1) {
      EXPECT_EQ(y.sharding(), NamedSharding(mesh, P("x")));
    }
  }
}

}  // namespace
}  // namespace tessera::test
