// Reshapes of split dims keep elements in order without a gather, also for uneven blocks.
#include <tessera/ops/numpy.hpp>

#include "comm/watch/traffic.hpp"
#include "support/layouts.hpp"

namespace tessera::test {
namespace {

struct Case {
  Shape from, to;
};

TEST(Reshape, of_any_sharding_keeps_the_order) {
  std::mt19937 random(5);
  const std::vector<Case> cases{{{7, 4}, {28}},        {{28}, {7, 4}},
                                {{3, 8}, {24}},        {{13, 6}, {26, 3}},
                                {{26, 3}, {13, 6}},    {{6, 4}, {4, 6}},
                                {{10, 9}, {6, 15}},    {{1, 7, 4}, {28, 1}},
                                {{7, 3, 5}, {7, 15}},  {{5, 7, 2}, {5, 14}},
                                {{5, 14}, {35, 2}},    {{9, 7, 2}, {3, 3, 14}},
                                {{2, 9}, {1, 18}},     {{11, 2, 13}, {2, 11, 13}},
                                {{6, 5, 4}, {120}},    {{2, 3, 40}, {240}},
                                {{3, 1, 50}, {150}},   {{150}, {3, 1, 50}},
                                {{64}, {2, 4, 8}},     {{3, 40}, {5, 24}},
                                {{2, 5, 24}, {5, 48}}, {{1, 3, 2}, {1, 6}},
                                {{1, 3, 2}, {1, 1, 6}}};
  for (int round = 0; round < 12; ++round)
    for (const auto& [from, to] : cases) {
      const Sharding sharding = random_sharding(random, random_mesh(random), from.ndim());
      const Array x =
          device_put(make(from, float32, [&](const Position& at) { return flat(at, from); }), sharding);
      const auto y = to_vector<float>(reshape(x, to));
      for (std::size_t i = 0; i < y.size(); ++i)
        ASSERT_EQ(y[i], static_cast<float>(i)) << to_string(from) << " -> " << to_string(to) << " at " << i;
    }
}

TEST(Transpose, an_error_shows_the_permutation_as_it_was_given) {
  EXPECT_THAT(error_of<ShapeError>([] {
                transpose(ones({2, 3, 4}), {0, -1, 2});
              }),
              testing::HasSubstr("the permutation [0,-1,2]"));
  EXPECT_THAT(error_of<ShapeError>([] {
                transpose(ones({2, 3, 4}), {-1, 0});
              }),
              testing::HasSubstr("the permutation [-1,0]"));
}

TEST(Reshape, of_uneven_rows_sends_neighbours_what_is_apart) {
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

// The bytes that a reshape moves, and its number of gathers.
struct Moved {
  std::int64_t gathers, bytes;
};
Moved moved_by(const std::function<Array()>& call) {
  const auto gathers = comm::traffic("all-gather").calls, before = comm::traffic().bytes;
  eval({call()});
  return {comm::traffic("all-gather").calls - gathers, comm::traffic().bytes - before};
}

TEST(Reshape, of_a_split_minor_dim_exchanges_blocks) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const std::vector<Case> cases{{{240, 84}, {240 * 84}}, {{3, 6720}, {20160}}, {{24, 10, 84}, {24, 840}}};
  for (const auto& [from, to] : cases) {
    const DimSpec whole = None;
    const PartitionSpec minor = from.ndim() == 2 ? P(whole, "x") : P(whole, whole, "x");
    const Array x = device_put(reshape(arange(from.elements()), from), mesh, minor);
    eval({x});
    const Moved moved = moved_by([&, &shape = to] { return reshape(x, shape); });
    EXPECT_EQ(moved.gathers, 0) << to_string(from);
    EXPECT_LE(moved.bytes, 3 * x.sharding().shard_shape(from).elements() * 4) << to_string(from);
  }
}

// The dims behind are regrouped first, and gather a dim of extent 1 that is split.
TEST(Reshape, of_a_split_dim_of_extent_1_before_others) {
  const int n = device_count();
  const Mesh mesh = n % 2 == 0 ? make_mesh({2, n / 2}, {"y", "z"}) : make_mesh({1, n}, {"y", "z"});
  for (const auto& to : {Shape{1, 6}, Shape{1, 1, 6}, Shape{1, 2, 3}, Shape{6, 1}}) {
    const Array x = device_put(reshape(arange(12.f), {2, 3, 2}), mesh, P("z", "y"))(slice(1, 2));
    EXPECT_EQ(to_vector<float>(reshape(x, to)), (std::vector<float>{6, 7, 8, 9, 10, 11})) << to_string(to);
  }
}

TEST(Reshape, of_several_split_dims_leaves_each_element_on_one_rank) {
  const int p = device_count();
  if (p % 2 != 0) GTEST_SKIP() << "needs an even number of ranks";
  const Mesh mesh = make_mesh({2, p / 2}, {"x", "y"});
  const Array x = device_put(reshape(arange(960), {24, 40}), mesh, P("x", "y"));
  const Array flat_x = reshape(x, {-1});
  EXPECT_EQ(flat_x.sharding(), NamedSharding(mesh, P(axes("x", "y"))));
  EXPECT_EQ(to_vector<int>(flat_x), to_vector<int>(arange(960)));
}

TEST(Reshape, divides_a_tuple_of_axes_over_the_new_dims) {
  const int p = device_count();
  if (p % 4 != 0) GTEST_SKIP() << "needs a multiple of four ranks";
  const Mesh mesh = make_mesh({2, 2, p / 4}, {"x", "y", "z"});
  const Array x = device_put(arange(2 * p), mesh, P(axes("x", "y", "z")));
  eval({x});
  const Moved moved = moved_by([&] { return reshape(x, {2, 2, p / 2}); });
  EXPECT_EQ(moved.bytes, 0);
  EXPECT_EQ(reshape(x, {2, 2, p / 2}).sharding(), NamedSharding(mesh, P("x", "y", "z")));
}

TEST(Reshape, to_few_rows_keeps_every_rank_busy) {
  const int p = device_count();
  if (p != 8) GTEST_SKIP() << "needs eight ranks";
  for (const auto& sizes : {std::vector{4, 2}, std::vector{2, 4}}) {
    const Mesh mesh = make_mesh(sizes, {"x", "y"});
    const Array x = device_put(arange(16), mesh, P(axes("x", "y")));
    const Array y = reshape(x, {4, 4});
    EXPECT_EQ(y.sharding(), NamedSharding(mesh, P("x", "y"))) << y.sharding();
    EXPECT_EQ(to_vector<int>(y), to_vector<int>(arange(16)));
  }
}

TEST(Median, of_all_elements_gathers_nothing) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  for (const std::int64_t columns : {840, 431}) {
    const Array x = device_put(reshape(arange(24 * columns) * 7 % 9973, {24, columns}), mesh, P(None, "x"));
    eval({x});
    const double expected = to_vector<double>(median(reshape(arange(24 * columns) * 7 % 9973, {-1})))[0];
    const Moved moved = moved_by([&] { return median(x); });
    EXPECT_EQ(moved.gathers, 0);
    EXPECT_EQ(to_vector<double>(median(x))[0], expected);
  }
}

TEST(Median, of_several_uneven_split_dims_gathers_nothing) {
  const int p = device_count(), rows = p % 2 == 0 ? 2 : 1;
  const Mesh mesh = make_mesh({rows, p / rows}, {"x", "y"});
  for (const auto& shape : {Shape{23, 431}, Shape{431, 23}, Shape{24, 431}, Shape{3, 5, 67}, Shape{1, 2}}) {
    const Array whole = reshape(arange(static_cast<int>(shape.elements())) * 7 % 9973, shape);
    const Array x = device_put(whole, mesh, P("x", "y"));
    eval({x});
    const Moved moved = moved_by([&] { return median(x); });
    EXPECT_EQ(moved.gathers, 0) << to_string(shape);
    EXPECT_EQ(to_vector<double>(median(x)), to_vector<double>(median(whole))) << to_string(shape);
  }
}

TEST(Vdot, of_split_minor_dims_moves_one_number) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array x = device_put(astype(reshape(arange(2400), {30, 80}) % 7, float64), mesh, P(None, "x"));
  const Array y = device_put(astype(reshape(arange(2400), {30, 80}) % 5, float64), mesh, P(None, "x"));
  eval({x, y});
  double expected = 0;
  for (int i = 0; i < 2400; ++i) expected += i % 7 * (i % 5);
  const Moved moved = moved_by([&] { return vdot(x, y); });
  EXPECT_LE(moved.bytes, 2 * 8 * device_count());
  EXPECT_EQ(to_vector<double>(vdot(x, y))[0], expected);
  EXPECT_EQ(to_vector<double>(vdot(x, reshape(y, {-1})))[0], expected);
}

TEST(Vdot, of_other_numbers_of_elements_is_an_error) {
  try {
    vdot(zeros({2, 3}), zeros({5}));
    FAIL();
  } catch (const ShapeError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("(2, 3) and (5,) have 6 and 5 elements"));
  }
}

}  // namespace
}  // namespace tessera::test
