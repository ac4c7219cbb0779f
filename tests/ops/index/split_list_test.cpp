// Split index lists: entries are sent to the block that they index, and the list is not gathered.
#include <tessera/debug.hpp>
#include <tessera/transforms.hpp>

#include "support/layouts.hpp"

namespace tessera::test {
namespace {

using Update = Array (*)(const Array& x, const Array& list, const Array& v);
const std::pair<const char*, Update> updates[] = {
    {"set", [](const Array& x, const Array& i, const Array& v) { return x.at(i).set(v); }},
    {"add", [](const Array& x, const Array& i, const Array& v) { return x.at(i).add(v); }},
    {"multiply", [](const Array& x, const Array& i, const Array& v) { return x.at(i).multiply(v); }},
    {"min", [](const Array& x, const Array& i, const Array& v) { return x.at(i).min(v); }},
    {"max", [](const Array& x, const Array& i, const Array& v) { return x.at(i).max(v); }}};

Mesh line() { return make_mesh({device_count()}, {"x"}); }

TEST(SplitList, updates_as_unsplit) {
  std::mt19937 random(5);
  const Array x =
      make({13, 3}, float64, [](const Position& at) { return static_cast<double>(at[0] * 3 + at[1]); });
  const Array list = arange(11) * 7 % 17 - 3;  // repeated, negative, and out of range
  const Array v =
      make({11, 3}, float64, [](const Position& at) { return static_cast<double>(at[0] * 2 - at[1]) / 4; });
  for (const auto& [name, update] : updates) {
    const auto expected = to_vector<double>(update(x, list, v));
    for (int round = 0; round < 6; ++round) {
      const Mesh mesh = random_mesh(random);
      const Array y = update(device_put(x, random_sharding(random, mesh, 2)),
                             device_put(list, random_sharding(random, mesh, 1)),
                             device_put(v, random_sharding(random, mesh, 2)));
      EXPECT_EQ(to_vector<double>(y), expected) << name << " round " << round;
    }
  }
}

TEST(SplitList, of_two_dims_and_two_arrays) {
  const auto f = [](const Array& x, const Array& i, const Array& j, const Array& v) {
    return x.at(i, j).set(v);
  };
  const Array x = zeros({6, 9}), i = reshape(arange(20) % 6, {4, 5}), j = reshape(arange(20) * 5 % 9, {4, 5});
  const Array v = astype(reshape(arange(20), {4, 5}), float32);
  const auto expected = to_vector<float>(f(x, i, j, v));
  const auto put = [](const Array& a) { return device_put(a, line(), P(None, "x")); };
  EXPECT_EQ(to_vector<float>(f(put(x), put(i), put(j), put(v))), expected);
}

TEST(SplitList, is_not_gathered) {
  if (device_count() == 1) GTEST_SKIP() << "nothing is split";
  const std::int64_t n = 1000 * device_count();
  const Array x = device_put(zeros({n}), line(), P("x")), v = device_put(ones({n}), line(), P("x"));
  const Array list = device_put((arange(static_cast<int>(n)) + 1) % static_cast<int>(n), line(), P("x"));
  for (const auto& [name, update] : updates) {
    const auto text = program_of(update(x, list, v));
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("all-gather"))) << name;
    EXPECT_THAT(text, testing::HasSubstr("all-to-all")) << name;
  }
}

// x is replicated along the list's axis: a long list is combined as terms of a short x, whatever its entries.
TEST(SplitList, into_a_whole_array_is_combined_and_not_gathered) {
  std::mt19937 random(7);
  const int n = 500 * device_count();
  for (const Dtype dtype : {float32, float64, int8, uint16, complex128, bool_}) {
    const Array x = astype(arange(26).reshape({13, 2}) % 5, dtype);
    const Array list = (arange(n) * 7 + arange(n) % 11) % 15 - 3;
    const Array v = astype(reshape(arange(2 * n) % 2 + 1, {n, 2}), dtype);
    for (const auto& [name, update] : updates) {
      const bool is_order = std::string(name) == "min" || std::string(name) == "max";
      if ((is_complex(dtype) && is_order) || std::string(name) == "multiply") continue;
      const auto expected = to_vector<std::complex<double>>(update(x, list, v));
      const Array placed =
          update(device_put(x, line(), P()), device_put(list, line(), P("x")), device_put(v, line(), P("x")));
      EXPECT_EQ(to_vector<std::complex<double>>(placed), expected) << name << " " << dtype;
      EXPECT_THAT(program_of(placed), testing::Not(testing::HasSubstr("all-gather"))) << name;
    }
  }
  const Array x = ones({5}, float64), list = arange(n) % 4,
              v = where(arange(n) % 100 == 7, 2.0, ones({n}, float64));
  const auto f = [](const Array& a, const Array& i, const Array& b) { return a.at(i).multiply(b); };
  const Array product = f(x, device_put(list, line(), P("x")), device_put(v, line(), P("x")));
  EXPECT_EQ(to_vector<double>(product), to_vector<double>(f(x, list, v)));
  EXPECT_THAT(program_of(product), testing::Not(testing::HasSubstr("all-gather")));
}

// The list is split over one axis of a grid, x over the other: entries move to x's axis first.
TEST(SplitList, over_another_axis_moves_the_list_there) {
  const int p = device_count();
  if (p < 8) GTEST_SKIP() << "needs an axis of four ranks";
  const Mesh grid = make_mesh({4, p / 4}, {"x", "y"});
  const int n = 8000;
  const Array x = zeros({n}, float64), list = (arange(n) * 3 + 1) % n, v = astype(arange(n), float64);
  for (const auto& [name, update] : updates) {
    const Array y =
        update(device_put(x, grid, P("x")), device_put(list, grid, P("y")), device_put(v, grid, P("y")));
    EXPECT_EQ(to_vector<double>(y), to_vector<double>(update(x, list, v))) << name;
  }
}

// The last entry of a position wins, in the row-major order of the list.
TEST(SplitList, of_several_dims_keeps_its_order) {
  const Array x = zeros({6}), list = reshape(arange(35) * 4 % 6, {5, 7}),
              v = astype(reshape(arange(35), {5, 7}), float32);
  const auto expected = to_vector<float>(x.at(list).set(v));
  for (const auto& spec : {P("x"), P(None, "x")})
    for (const auto& of_x : {P("x"), P()})
      EXPECT_EQ(to_vector<float>(device_put(x, line(), of_x)
                                     .at(device_put(list, line(), spec))
                                     .set(device_put(v, line(), spec))),
                expected);
}

TEST(SplitList, searches_a_split_table_as_unsplit) {
  std::mt19937 random(6);
  const Array table = array({-4, -4, -1, 0, 0, 0, 2, 5, 5, 9, 11}), values = reshape(arange(24) - 8, {6, 4});
  for (const std::string side : {"left", "right"}) {
    const auto expected = to_vector<int>(searchsorted(table, values, side));
    for (int round = 0; round < 8; ++round) {
      const Mesh mesh = random_mesh(random);
      const Array places = searchsorted(device_put(table, random_sharding(random, mesh, 1)),
                                        device_put(values, random_sharding(random, mesh, 2)), side);
      EXPECT_EQ(to_vector<int>(places), expected) << side << " round " << round;
    }
  }
}

TEST(SplitList, searches_without_gathering) {
  if (device_count() == 1) GTEST_SKIP() << "nothing is split";
  const int n = 1000 * device_count();
  const Array table = device_put(arange(4 * n), line(), P("x")),
              values = device_put(arange(n) - 5, line(), P("x"));
  const auto text = program_of(searchsorted(table, values));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("all-gather")));
}

// ---- gradients if several entries have one position ----
std::vector<double> gradient_of_updates(Update update, const std::vector<double>& v) {
  const Array x = array({2.0, 3.0, 5.0}), list = array({1, 1, 2}), weights = array({1.0, 10.0, 100.0});
  return to_vector<double>(grad([&](const Array& u) { return sum(update(x, list, u) * weights); })(array(v)));
}

TEST(Repeated, of_a_product_each_gets_the_others) {
  EXPECT_EQ(gradient_of_updates(updates[2].second, {7, 11, 13}), (std::vector<double>{330, 210, 500}));
  EXPECT_EQ(gradient_of_updates(updates[2].second, {0, 11, 13}), (std::vector<double>{330, 0, 500}));
  EXPECT_EQ(gradient_of_updates(updates[2].second, {0, 0, 13}), (std::vector<double>{0, 0, 500}));
}
TEST(Repeated, of_a_set_the_last_one_counts) {
  EXPECT_EQ(gradient_of_updates(updates[0].second, {7, 11, 13}), (std::vector<double>{0, 10, 100}));
}
TEST(Repeated, of_an_extremum_equal_ones_share) {
  EXPECT_EQ(gradient_of_updates(updates[4].second, {7, 7, 1}), (std::vector<double>{5, 5, 0}));
  EXPECT_EQ(gradient_of_updates(updates[4].second, {3, 1, 5}), (std::vector<double>{5, 0, 50}));
}

}  // namespace
}  // namespace tessera::test
