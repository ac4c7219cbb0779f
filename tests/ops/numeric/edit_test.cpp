// Parts put in, taken out and replaced, on every sharding.
#include <tessera/debug.hpp>
#include <tessera/ops/edit.hpp>
#include <tessera/runtime.hpp>

#include "ops/numeric/goldens.hpp"
#include "support/errors.hpp"

namespace tessera::test {
namespace {

using Given = const Operands&;

TEST(Edit, PartsAreThoseOfNumPy) {
  expect_as_numpy("array_split_1", [](Given o) { return array_split(o.u, 3)[1]; });
  expect_as_numpy("insert", [](Given o) { return insert(o.u, 2, 9.0); });
  expect_as_numpy("insert_columns", [](Given o) { return insert(o.u, -1, o.x(slice(), slice(0, 2)), 1); });
  expect_as_numpy("delete", [](Given o) { return delete_(o.u, {1, -1, 4}); });
  expect_as_numpy("delete_columns", [](Given o) { return delete_(o.u, {0}, 1); });
  expect_as_numpy("resize", [](Given o) { return resize(o.u, {4, 11}); });
}

TEST(Edit, ReplacedPlacesAreThoseOfNumPy) {
  expect_as_numpy("put", [](Given o) { return put(o.u, array({30, 2, 17}), array({-1.0, -2.0})); });
  expect_as_numpy("place", [](Given o) { return place(o.u, o.n > 2, array({-1.0, -2.0, -3.0})); });
  expect_as_numpy("fill_diagonal", [](Given o) { return fill_diagonal(o.u, 7.5); });
}

TEST(Edit, AMaskTakesAsManyValuesAsItChooses) {
  expect_as_numpy("mask_set", [](Given o) { return o.u.at(o.n > 6).set(array({-1.0, -2.0, -3.0, -4.0})); });
  EXPECT_THAT(error_of<ShapeError>([] {
                static_cast<void>(arange(5).at(arange(5) > 2).set(array({1, 2, 3})));
              }),
              testing::HasSubstr(
                  "the mask chooses 2 of (5,), but there are 3 values; give one for each, or one for all"));
}

TEST(Edit, NumbersAndBitsAreThoseOfNumPy) {
  expect_as_numpy("round_1", [](Given o) { return round(o.u / 7, 1); });
  expect_as_numpy("round_tens", [](Given o) { return round(o.u * 9, -1); });
  expect_as_numpy("unwrap", [](Given o) { return unwrap(o.u * 3, 0); });
  expect_as_numpy("unwrap_rows", [](Given o) { return unwrap(o.x); });
  expect_as_numpy("packbits", [](Given o) { return packbits(o.n > 0, 0); });
  expect_as_numpy("unpackbits", [](Given o) { return unpackbits(astype(o.u * 4, uint8), 1); });
}

TEST(Edit, OtherNamesAreTheSameFunctions) {
  EXPECT_EQ(to_vector<float>(arctan2(1.0f, 2.0f)), to_vector<float>(atan2(1.0f, 2.0f)));
  EXPECT_EQ(to_vector<int>(left_shift(array({1, 3}), 2)), (std::vector<int>{4, 12}));
  EXPECT_EQ(to_vector<int>(right_shift(array({8, 3}), 1)), (std::vector<int>{4, 1}));
  EXPECT_EQ(to_vector<int>(bitwise_count(array({7, 8}))), (std::vector<int>{3, 1}));
  EXPECT_EQ(to_vector<float>(erfinv(0.5f)), to_vector<float>(erf_inv(0.5f)));
  EXPECT_EQ(to_vector<float>(identity(2)), (std::vector<float>{1, 0, 0, 1}));
}

TEST(Edit, PlacesOutOfRangeAreRefused) {
  const Array x = ones({3, 4});
  EXPECT_THAT(error_of<IndexError>([&] { static_cast<void>(delete_(x, {3})); }),
              testing::HasSubstr("place 3 is out of range for an axis of extent 3"));
  EXPECT_THAT(error_of<IndexError>([&] { static_cast<void>(insert(x, 4, 0.0)); }),
              testing::HasSubstr("place 4 is out of range"));
  EXPECT_THAT(error_of<ShapeError>([&] { static_cast<void>(fill_diagonal(ones(3), 0.0)); }),
              testing::HasSubstr("has no diagonal"));
}

TEST(Known, TakeRefusesKnownIndicesOutOfRangeAndClampsInATrace) {
  EXPECT_THAT(error_of<IndexError>([] {
                static_cast<void>(take(arange(10.f), array({0, 50}), 0));
              }),
              testing::HasSubstr("the indices go from 0 to 50, but dimension 0 has the extent 10"));
  EXPECT_EQ(to_vector<float>(take(arange(10.f), array({0, 50}), 0, "clip")), (std::vector<float>{0, 9}));
  EXPECT_EQ(to_vector<float>(jit([](const Array& x) {
              return take(x, array({0, 50}), 0);
            })(arange(10.f))),
            (std::vector<float>{0, 9}));
}

TEST(Known, QuantileRefusesKnownPartsOutOfRange) {
  EXPECT_THAT(error_of<ArgumentError>([] { static_cast<void>(quantile(arange(4.f), 1.5)); }),
              testing::HasSubstr("1.5 is no part of the elements, which goes from 0 to 1"));
  EXPECT_THAT(error_of<ArgumentError>([] { static_cast<void>(percentile(arange(4.f), -3)); }),
              testing::HasSubstr("from 0 to 100"));
  EXPECT_EQ(item<float>(jit([](const Array& x) { return quantile(x, 1.5); })(arange(4.f))), 3);
}

TEST(Everyday, ArraysOfBracesTakeADtypeOrAShape) {
  EXPECT_EQ(array({1, 2, 3}, float64).dtype(), float64);
  EXPECT_EQ(to_vector<double>(array({0.1, 2.5}, float32)), (std::vector<double>{0.1f, 2.5}));
  EXPECT_EQ(array({1., 2.}, {2, 1}).shape(), (Shape{2, 1}));
  EXPECT_EQ(to_vector<int>(array({{1, 2}, {3, 4}}, int64)), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(to_vector<int>(array(std::vector<int>{7, 8}, uint8)), (std::vector<int>{7, 8}));
}

TEST(Everyday, IntegersAreShiftedByOperators) {
  EXPECT_EQ(to_vector<int>(array({1, 3}) << 2), (std::vector<int>{4, 12}));
  EXPECT_EQ(to_vector<int>(array({8, 3}) >> 1), (std::vector<int>{4, 1}));
  EXPECT_EQ(to_vector<int>(1 << array({0, 4})), (std::vector<int>{1, 16}));
}

TEST(Everyday, PrintTakesWhateverCanBeWritten) {
  testing::internal::CaptureStdout();
  print("a is", array({1, 2}), 3, Shape{2, 1}, float32);
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_EQ(text, process_index() == 0 ? "a is [1 2] 3 (2, 1) float32\n" : "");
}

TEST(Ranges, AnElementHasTheSameBitsWhereverItIsComputed) {
  const auto whole = to_vector<double>(linspace(0.1, 1.7, 53, float64));
  for (int i = 0; i < 53; ++i) EXPECT_EQ(item<double>(linspace(0.1, 1.7, 53, float64)(i)), whole[i]);
}

}  // namespace
}  // namespace tessera::test
