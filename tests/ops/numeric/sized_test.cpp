// Results whose size depends on values.
#include <tessera/debug.hpp>

#include "ops/numeric/goldens.hpp"

namespace tessera::test {
namespace {

using Given = const Operands&;

TEST(Masks, ReadElementsRowsAndColumns) {
  expect_as_numpy("mask", [](Given o) { return o.u(o.n > 0); });
  expect_as_numpy("mask_rows", [](Given o) { return o.u(o.n(slice(), 0) > 0); });
  expect_as_numpy("mask_columns", [](Given o) { return o.u(slice(), o.n(1) > 0); });
  expect_as_numpy("mask_and_slice", [](Given o) { return o.u(o.n(slice(), 1) > 0, slice(1, 3)); });
  EXPECT_EQ(ones({6})(zeros({6}, bool_)).shape(), Shape{0});
  EXPECT_EQ(ones({6, 2})(ones({6}, bool_)).shape(), (Shape{6, 2}));
}

TEST(Masks, TheResultIsSplitAsTheOperandWas) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array x = device_put(arange(100), mesh, P("x"));
  const Array chosen = x(x % 3 == 0);
  EXPECT_EQ(chosen.sharding(), NamedSharding(mesh, P("x")));
  const auto values = to_vector<int>(chosen);
  ASSERT_EQ(values.size(), 34u);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], static_cast<int>(3 * i));
}

// Traffic of a communicating kernel is counted, and is at most a block of the result.
TEST(Masks, NothingIsGathered) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const std::int64_t block = 4096;
  const Array x = block_until_ready(device_put(arange(block * device_count()), mesh, P("x")));
  debug::CommStats stats;
  eval(x(x % 2 == 0));
  EXPECT_EQ(stats.bytes("all-gather"), 0);
  EXPECT_LE(stats.bytes(), block / 2 * 4 + 512);
}

TEST(Masks, TheGradientGoesBackToWhatWasChosen) {
  std::mt19937 random(3);
  for (int round = 0; round < 4; ++round) {
    const Sharding s = random_sharding(random, random_mesh(random), 2);
    const Operands o = operands();
    const Array x = device_put(o.u, s), mask = device_put(o.n > 0, s);
    const Array g = grad([&](const Array& a) {
      const Array chosen = a(mask);
      return sum(chosen * chosen * arange(chosen.size()));
    })(x);
    const auto is_chosen = to_vector<bool>(mask);
    const auto values = to_vector<double>(x), gradient = to_vector<double>(g);
    double place = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_DOUBLE_EQ(gradient[i], is_chosen[i] ? 2 * place * values[i] : 0.0) << i << " " << text_of(s);
      place += is_chosen[i];
    }
  }
}

TEST(Masks, AMaskThatDoesNotFitIsRefused) {
  EXPECT_THAT(error_of<IndexError>([] {
                ones({6, 2})(ones({5}, bool_));
              }),
              testing::HasSubstr("the mask has shape (5"));
  EXPECT_THAT(error_of<IndexError>([] {
                ones({6, 2})(slice(), ones({6}, bool_));
              }),
              testing::HasSubstr("from dimension 1"));
}

TEST(Places, OfWhatIsNotZero) {
  expect_as_numpy("nonzero_0", [](Given o) { return nonzero(o.n > 2)[0]; });
  expect_as_numpy("nonzero_1", [](Given o) { return nonzero(o.n > 2)[1]; });
  expect_as_numpy("argwhere", [](Given o) { return argwhere(o.n > 2); });
  expect_as_numpy("flatnonzero", [](Given o) { return flatnonzero(o.n > 2); });
  EXPECT_EQ(nonzero(ones({0, 3})).size(), 2u);
}

TEST(Compress, AlongAnAxis) {
  expect_as_numpy("compress", [](Given o) { return compress(array({1, 0, 1, 1}), o.u, 0); });
  expect_as_numpy("compress_columns", [](Given o) { return compress(o.n(2) > 0, o.u, 1); });
  expect_as_numpy("extract", [](Given o) { return extract(o.n < 0, o.u); });
  EXPECT_THAT(error_of<ShapeError>([] {
                compress(ones({4}), ones({3, 2}), 0);
              }),
              testing::HasSubstr("at most the 3 elements of axis 0"));
}

TEST(Unique, ValuesPlacesAndNumbers) {
  expect_as_numpy("unique", [](Given o) { return unique(o.n); });
  expect_as_numpy("unique_index", [](Given o) { return unique_all(o.n).indices; });
  expect_as_numpy("unique_inverse", [](Given o) { return unique_all(o.n).inverse; });
  expect_as_numpy("unique_counts", [](Given o) { return unique_counts(o.n).second; });
  expect_as_numpy("unique_nan", [](Given o) { return unique(o.z); });
  EXPECT_EQ(unique(zeros({0})).shape(), Shape{0});
}

TEST(Sets, AsNumpys) {
  expect_as_numpy("union1d", [](Given o) { return union1d(o.n(slice(0, 4)), o.n(slice(2, None)) * 2); });
  expect_as_numpy("intersect1d",
                  [](Given o) { return intersect1d(o.n(slice(0, 3)), o.n(slice(2, None)) * 2); });
  expect_as_numpy("setdiff1d", [](Given o) { return setdiff1d(o.n, o.n(slice(2, None)) * 2); });
  expect_as_numpy("setxor1d", [](Given o) { return setxor1d(o.n(slice(0, 2)), o.n(slice(1, None)) * 2); });
  expect_as_numpy("isin", [](Given o) { return isin(o.n, array({3, -2, 7, 100})); });
  expect_as_numpy("isin_invert", [](Given o) { return isin(o.n, array({3, -2, 7, 100}), true); });
}

TEST(Bincount, ReadsTheLargestUnlessALengthIsSaid) {
  expect_as_numpy("bincount", [](Given o) { return bincount(ravel(abs(o.n))); });
  expect_as_numpy("bincount_weights", [](Given o) { return bincount(ravel(abs(o.n)), ravel(o.u), 12); });
}

TEST(Sizes, AreSaidInATrace) {
  const Array x = device_put(arange(20) % 7, make_mesh({device_count()}, {"x"}), P("x"));
  const auto values = jit([](const Array& a) { return unique(a, {.size = 9, .fill_value = -1}); })(x);
  EXPECT_EQ(to_vector<int>(values), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, -1, -1}));
  const auto all = unique_all(x, {.size = 5});
  EXPECT_EQ(to_vector<int>(all.counts), (std::vector<int>{3, 3, 3, 3, 3}));
  const auto places =
      jit([](const Array& a) { return nonzero(a == 6, {.size = 4, .fill_value = 99})[0]; })(x);
  EXPECT_EQ(to_vector<int>(places), (std::vector<int>{6, 13, 99, 99}));
  const auto few = jit([](const Array& a) { return compress(a > 3, a, 0, {.size = 2}); })(x);
  EXPECT_EQ(to_vector<int>(few), (std::vector<int>{4, 5}));
  const auto rows = vmap([](const Array& a) { return flatnonzero(a, {.size = 3, .fill_value = -1}); })(
      array({{1, 0, 1, 1}, {0, 0, 1, 0}}));
  EXPECT_EQ(to_vector<int>(rows), (std::vector<int>{0, 2, 3, 2, -1, -1}));
}

TEST(Sizes, ThatWereNotSaidInATraceAreRefused) {
  const auto text = error_of<ArgumentError>([] { jit([](const Array& a) { return a(a > 0); })(arange(5)); });
  EXPECT_THAT(text, testing::HasSubstr("not known while a function is traced"));
  EXPECT_THAT(text, testing::HasSubstr("{.size = n}"));
  EXPECT_THROW(unique(arange(3), {.size = -1}), ArgumentError);
}

}  // namespace
}  // namespace tessera::test
