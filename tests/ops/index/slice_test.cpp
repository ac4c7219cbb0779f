// Slices, integers, ellipsis, new axes: values on any sharding, and traffic.
#include "support/layouts.hpp"

namespace tessera::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A random index part for a dim of size n, and the source positions it takes.
struct RandomPart {
  IndexPart part;
  std::vector<std::int64_t> taken;
  bool keeps_dim;
};
RandomPart random_part(std::mt19937& random, std::int64_t n) {
  if (n > 0 && random() % 4 == 0) {
    const auto i = static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
    return {IndexPart(random() % 2 ? i : i - n), {i}, false};
  }
  const auto bound = [&]() -> SliceBound {
    if (random() % 4 == 0) return None;
    return static_cast<std::int64_t>(pick(random, static_cast<int>(-n) - 2, static_cast<int>(n) + 2));
  };
  const int steps[] = {1, 1, 1, 2, 3, -1, -1, -2, 7};
  const std::int64_t step = steps[random() % 9];
  const auto start = bound(), stop = bound();
  RandomPart result{IndexPart(slice(start, stop, step)), {}, true};
  const auto wrap = [&](std::int64_t v) { return v < 0 ? v + n : v; };
  if (step > 0) {
    const auto from = std::max<std::int64_t>(start.value ? wrap(*start.value) : 0, 0),
               to = stop.value ? wrap(*stop.value) : n;
    for (auto i = from; i < to && i < n; i += step) result.taken.push_back(i);
  } else {
    const auto from = std::min<std::int64_t>(start.value ? wrap(*start.value) : n - 1, n - 1),
               to = stop.value ? wrap(*stop.value) : -1;
    for (auto i = from; i > to && i >= 0; i += step) result.taken.push_back(i);
  }
  return result;
}

TEST(Slice, any_index_of_any_sharding_gives_what_loops_give) {
  std::mt19937 random(11);
  const Dtype dtypes[] = {float32, int8, float64, bool_, complex128, uint16};
  for (int round = 0; round < 60; ++round) {
    const Mesh mesh = random_mesh(random);
    const int ndim = pick(random, 1, 3);
    std::vector<std::int64_t> extents;
    for (int d = 0; d < ndim; ++d) extents.push_back(pick(random, d == 0 && round % 9 == 0 ? 0 : 1, 9));
    const Shape shape(extents);
    const Sharding sharding = random_sharding(random, mesh, ndim);
    const Dtype dtype = dtypes[random() % 6];
    const auto value = [&](const Position& at) {
      return static_cast<double>(is_bool(dtype) ? flat(at, shape) % 3 == 0 : flat(at, shape) % 120);
    };
    const Array x = device_put(make(shape, dtype, value), sharding);
    std::vector<IndexPart> parts;
    std::vector<std::vector<std::int64_t>> taken;
    std::vector<bool> keeps;
    std::vector<std::int64_t> result;
    for (int d = 0; d < ndim; ++d) {
      if (random() % 5 == 0)
        parts.emplace_back(newaxis), taken.push_back({-1}), keeps.push_back(true), result.push_back(1);
      auto part = random_part(random, extents[d]);
      parts.push_back(part.part);
      if (part.keeps_dim) result.push_back(static_cast<std::int64_t>(part.taken.size()));
      taken.push_back(part.taken);
      keeps.push_back(part.keeps_dim);
    }
    const Array y = index(x, parts);
    const std::string what =
        "round " + std::to_string(round) + " " + to_string(shape) + " " + text_of(sharding);
    EXPECT_TRUE(y.dtype() == dtype);
    // (A new axis beside a split dim of size 1 removes that split.)
    const bool has_ones = std::count(extents.begin(), extents.end(), 1) > 0;
    if (!has_ones) {
      EXPECT_THAT(program_of(y), Not(HasSubstr("all-gather"))) << what;
    }
    expect_elements(
        y, Shape(result),
        [&](const Position& at) {
          Position source;
          std::size_t r = 0;
          for (std::size_t k = 0; k < taken.size(); ++k) {
            const auto i = keeps[k] ? at[r++] : 0;
            if (taken[k].size() != 1 || taken[k][0] != -1) source.push_back(taken[k][i]);
          }
          return value(source);
        },
        what);
  }
}

TEST(Slice, keeps_the_operands_sharding_and_loses_only_what_an_integer_takes_away) {
  const int n = device_count();
  const Mesh mesh = make_mesh({n}, {"x"});
  const Array x = device_put(zeros({8 * n, 6}), mesh, P("x", None));
  EXPECT_EQ(x(slice(1, None)).sharding(), NamedSharding(mesh, P("x", None)));
  EXPECT_EQ(x(slice(), slice(None, None, 2)).sharding(), NamedSharding(mesh, P("x", None)));
  EXPECT_EQ(x(slice(), 3).sharding(), NamedSharding(mesh, P("x")));
  EXPECT_EQ(x(newaxis, ellipsis).sharding(), NamedSharding(mesh, P(None, "x", None)));
  EXPECT_TRUE(x(3).is_fully_replicated());
  EXPECT_TRUE(x(3).is_committed());
}

TEST(Slice, of_an_unsplit_dim_moves_nothing_and_of_a_split_dim_only_what_is_missing) {
  const int n = device_count();
  const Mesh mesh = make_mesh({n}, {"x"});
  const Array x = device_put(zeros({8 * n, 6}), mesh, P("x", None));
  EXPECT_THAT(program_of(x(slice(), slice(2, 5))), Not(HasSubstr("bytes=")));
  if (n == 1) return;
  // Shifted by one row: each rank receives one row of 6 floats.
  EXPECT_THAT(program_of(x(slice(1, None))), HasSubstr("collective-permute"));
  EXPECT_THAT(program_of(x(slice(1, None))), HasSubstr("bytes=24"));
}

TEST(Slice, errors_say_which_index_does_not_fit_and_where) {
  const Array x = zeros({4, 3});
  auto text = error_of<IndexError>([&] { x(4); });
  EXPECT_THAT(text,
              HasSubstr("index 4 is out of bounds for dimension 0 of shape (4, 3); it must be in [-4, 4)"));
  EXPECT_THAT(text, HasSubstr("slice_test.cpp"));
  EXPECT_THAT(error_of<IndexError>([&] { x(0, 0, 0); }),
              HasSubstr("too many indices: 3 for an array of 2 dimensions"));
  EXPECT_THAT(error_of<IndexError>([&] { x(ellipsis, ellipsis); }), HasSubstr("only one ellipsis"));
  EXPECT_THAT(error_of<IndexError>([&] { x(slice(0, 3, 0)); }),
              HasSubstr("step of the slice of dimension 0 is 0"));
  EXPECT_THAT(error_of<IndexError>([&] { x(zeros({2})); }), HasSubstr("must hold integers, not float32"));
  EXPECT_THAT(error_of<IndexError>([&] { x.at(x > 0, 0).set(1); }),
              HasSubstr("bool selects a number of elements"));
}

TEST(Concatenate, any_shardings_give_what_loops_give) {
  std::mt19937 random(12);
  for (int round = 0; round < 40; ++round) {
    const Mesh mesh = random_mesh(random);
    const int ndim = pick(random, 1, 3), axis = pick(random, 0, ndim - 1), count = pick(random, 1, 4);
    std::vector<std::int64_t> extents;
    for (int d = 0; d < ndim; ++d) extents.push_back(pick(random, 1, 7));
    std::vector<Array> parts;
    std::vector<std::int64_t> owner, place;
    for (int i = 0; i < count; ++i) {
      auto own = extents;
      own[axis] = pick(random, 0, 7);
      Array x = make(Shape(own), float32, [&](const Position& at) {
        return 1000.0 * i + static_cast<double>(flat(at, Shape(own)));
      });
      if (random() % 4 != 0) x = device_put(x, random_sharding(random, mesh, ndim));
      parts.push_back(x);
      for (std::int64_t k = 0; k < own[axis]; ++k) owner.push_back(i), place.push_back(k);
    }
    auto result = extents;
    result[axis] = static_cast<std::int64_t>(owner.size());
    const Array y = concatenate(parts, axis - (round % 2 ? ndim : 0));
    EXPECT_THAT(program_of(y), Not(HasSubstr("all-gather")));
    expect_elements(
        y, Shape(result),
        [&](const Position& at) {
          auto source = at;
          const auto k = static_cast<std::size_t>(at[axis]);
          source[axis] = place[k];
          return 1000.0 * static_cast<double>(owner[k]) +
                 static_cast<double>(flat(source, parts[owner[k]].shape()));
        },
        "round " + std::to_string(round));
  }
}

TEST(Concatenate, promotes_dtypes_and_refuses_other_shapes) {
  EXPECT_TRUE(concatenate({zeros({2}, int32), zeros({3}, float64)}).dtype() == float64);
  EXPECT_THAT(error_of<ShapeError>([] {
                concatenate({zeros({2, 3}), zeros({2, 4})}, 0);
              }),
              HasSubstr("array 1 has shape (2, 4), array 0 has (2, 3)"));
  EXPECT_THAT(error_of<ArgumentError>([] { concatenate({}); }), HasSubstr("the list of arrays is empty"));
  EXPECT_THAT(error_of<ShapeError>([] { concatenate({Array(1.0f), Array(2.0f)}); }), HasSubstr("use stack"));
  EXPECT_THAT(error_of<ShapeError>([] {
                stack({zeros({2}), zeros({3})});
              }),
              HasSubstr("all must have the same shape"));
}

TEST(Stack, puts_a_new_axis_anywhere) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array a = device_put(arange(5), mesh, P("x")), b = arange(5) + 10;
  EXPECT_THAT(to_vector<int>(stack({a, b})), ::testing::ElementsAre(0, 1, 2, 3, 4, 10, 11, 12, 13, 14));
  EXPECT_THAT(to_vector<int>(stack({a, b}, -1)), ::testing::ElementsAre(0, 10, 1, 11, 2, 12, 3, 13, 4, 14));
  EXPECT_EQ(stack({a, b}).sharding(), NamedSharding(mesh, P(None, "x")));
}

TEST(Print, of_a_large_array_shows_its_corners) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array x = device_put(reshape(arange(2000), {20, 100}), mesh, P(None, "x"));
  const auto text = to_string(x);
  EXPECT_THAT(text, HasSubstr("[[   0    1    2 ...   97   98   99]"));
  EXPECT_THAT(text, HasSubstr("1999]]"));
}

}  // namespace
}  // namespace tessera::test
