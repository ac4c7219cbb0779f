// Options of NumPy's functions on every sharding: values and shapes that NumPy gave (make_goldens.py).
#include "comm/watch/traffic.hpp"
#include "support/layouts.hpp"

namespace tessera::test {
namespace {

struct Golden {
  const char* name;
  Shape shape;
  std::vector<double> values;
};
const std::vector<Golden>& goldens() {
  static const std::vector<Golden> all = {
#include "options_golden.inc"
  };
  return all;
}

using Call = std::function<Array(const Array& x, const Array& n)>;

void expect_as_numpy(const std::string& name, const Call& call) {
  const auto golden =
      std::find_if(goldens().begin(), goldens().end(), [&](const Golden& g) { return g.name == name; });
  ASSERT_NE(golden, goldens().end()) << name;
  std::mt19937 random(11);
  const Array integers = reshape(arange(35) * 11 % 17 - 8, {7, 5}), floats = astype(integers, float64);
  for (int round = 0; round < 5; ++round) {
    const Sharding sharding = random_sharding(random, random_mesh(random), 2);
    const bool is_committed = round > 0;
    const Array y = is_committed ? call(device_put(floats, sharding), device_put(integers, sharding))
                                 : call(floats, integers);
    ASSERT_EQ(y.shape(), golden->shape) << name << " " << text_of(sharding);
    const auto values = to_vector<double>(y);
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], golden->values[i], 1e-12 * (1 + std::abs(golden->values[i])))
          << name << " at " << i << " " << text_of(sharding);
  }
}

TEST(Options, SumsAndProductsInADtype) {
  expect_as_numpy("sum_dtype", [](auto&, auto& n) { return sum(n, 0, float64); });
  expect_as_numpy("prod_dtype", [](auto&, auto& n) { return prod(n % 5 + 1, 1, int64); });
  EXPECT_EQ(sum(ones({3}, int8), {}, int8).dtype(), int8);
}

TEST(Options, VarianceDividesByWhatTheCorrectionLeaves) {
  expect_as_numpy("var_correction", [](auto& x, auto&) { return var(x, 0, false, 1); });
  expect_as_numpy("std_correction", [](auto& x, auto&) { return tessera::std(x, 1, false, 2.5); });
  EXPECT_TRUE(std::isnan(to_vector<double>(var(ones({1}), {}, false, 1))[0]));
}

TEST(Options, ClipBoundsFromOneSide) {
  expect_as_numpy("clip_below", [](auto& x, auto&) { return clip(x, -3, None); });
  expect_as_numpy("clip_above", [](auto& x, auto&) { return clip(x, None, 2); });
}

TEST(Options, LinspaceOfADtypeWithAndWithoutItsEnd) {
  expect_as_numpy("linspace", [](auto&, auto&) { return linspace(-1, 2, 13, float64); });
  expect_as_numpy("linspace_open", [](auto&, auto&) { return linspace(-1, 2, 12, float64, false); });
  expect_as_numpy("linspace_integers", [](auto&, auto&) { return linspace(-7, 9, 11, int64); });
  EXPECT_EQ(to_vector<double>(linspace(0, 0.7, 8, float64)).back(), 0.7);
}

TEST(Options, RollOfSeveralAxesAndOverTheEndsOfRows) {
  expect_as_numpy("roll_axes", [](auto& x, auto&) { return roll(x, {2, -1}, {0, 1}); });
  expect_as_numpy("roll_flat", [](auto& x, auto&) { return roll(x, 8); });
  EXPECT_THROW(roll(ones({2, 2}), {1, 2, 3}, {0, 1}), ArgumentError);
}

TEST(Options, RepeatByCounts) {
  const std::vector<std::int64_t> counts = {2, 0, 3, 1, 0, 0, 4};
  expect_as_numpy("repeat_counts", [&](auto& x, auto&) { return repeat(x, counts, 0); });
  expect_as_numpy("repeat_counts",
                  [&](auto& x, auto&) { return repeat(x, array(HostArray(counts, Shape{7})), 0, 10); });
  EXPECT_THROW(repeat(ones({3}), std::vector<std::int64_t>{1, 2}, 0), ShapeError);
  EXPECT_THROW(repeat(ones({2}), std::vector<std::int64_t>{1, -2}, 0), ArgumentError);
}

TEST(Options, CumulativeFunctions) {
  expect_as_numpy("cumsum_flat", [](auto&, auto& n) { return cumsum(n); });
  expect_as_numpy("cumprod_dtype", [](auto&, auto& n) { return cumprod(n % 4 + 1, 1, {.dtype = float64}); });
  expect_as_numpy("cumsum_initial", [](auto& x, auto&) { return cumsum(x, 0, {.include_initial = true}); });
  expect_as_numpy("cumsum_reverse_initial",
                  [](auto& x, auto&) { return cumsum(x, 0, {.include_initial = true, .reverse = true}); });
  expect_as_numpy("cummax", [](auto& x, auto&) { return cummax(x, 0); });
  expect_as_numpy("cummax_reverse", [](auto& x, auto&) { return cummax(x, 0, true); });
  expect_as_numpy("cummin", [](auto& x, auto&) { return cummin(x, 1); });
  expect_as_numpy("cumlogsumexp", [](auto& x, auto&) { return cumlogsumexp(x, 0); });
}

TEST(Options, SortsDescendingAndEqualOnesKeepTheirOrder) {
  expect_as_numpy("sort_descending", [](auto& x, auto&) { return sort(x, 0, {.descending = true}); });
  expect_as_numpy("argsort_descending",
                  [](auto& x, auto&) { return argsort(x % 3, 0, {.descending = true}); });
}

TEST(Options, SearchesInTheOrderOfASorter) {
  const Array table = array({5, 1, 4, 1, 9, 2, 6, 5});
  expect_as_numpy("searchsorted_sorter",
                  [&](auto&, auto&) { return searchsorted(table, arange(12), "right", argsort(table)); });
}

class PadMode : public testing::TestWithParam<const char*> {};
TEST_P(PadMode, IsAsNumpys) {
  const std::string mode = GetParam();
  expect_as_numpy("pad_" + mode, [&](auto& x, auto&) { return pad(x, {{2, 3}, {0, 4}}, mode); });
  expect_as_numpy("pad_far_" + mode, [&](auto& x, auto&) {
    return pad(x(slice(0, 3)), {{7, 5}, {1, 0}}, mode);
  });
  expect_as_numpy("pad_integers_" + mode, [&](auto&, auto& n) { return pad(n, {{1, 2}, {3, 1}}, mode); });
}
INSTANTIATE_TEST_SUITE_P(All, PadMode,
                         testing::Values("edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum",
                                         "minimum", "mean", "median"));

TEST(Options, PadOfAnUnknownModeNamesThem) {
  try {
    pad(ones({2}), {{1, 1}}, "mirror");
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("the mode is 'mirror'; it must be 'constant', 'edge'"));
  }
  EXPECT_THROW(pad(ones({0}), {{1, 1}}, "wrap"), ShapeError);
}

TEST(Sort, OfManyShortLinesMovesBlocksNotCounts) {
  const int p = device_count();
  const Mesh mesh = make_mesh({p}, {"x"});
  const Shape shape{4096, 64};
  const Array whole = reshape(arange(shape.elements()) * 7919 % 10007, shape);
  const Array x = device_put(whole, mesh, P(None, "x"));
  eval({x});
  const auto before = comm::traffic().bytes;
  const Array y = sort(x), places = argsort(x);
  eval({y, places});
  const std::int64_t block = x.sharding().shard_shape(shape).elements() * 4;
  EXPECT_LE(comm::traffic().bytes - before, 5 * block);
  EXPECT_EQ(y.sharding(), x.sharding());
  EXPECT_EQ(to_vector<int>(y), to_vector<int>(sort(whole)));
  EXPECT_EQ(to_vector<int>(places), to_vector<int>(argsort(whole)));
}

}  // namespace
}  // namespace tessera::test
