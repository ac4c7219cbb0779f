// split, flip, roll, pad, tile, repeat, tril, triu, diagonal compared with plain loops on any sharding, and
// their traffic.
#include <tessera/grad.hpp>
#include <tessera/ops/arrange.hpp>

#include "support/layouts.hpp"

namespace tessera::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// An array of a random shape and sharding, and the function of its elements.
struct Case {
  Shape shape;
  Array x;
  std::string text;
  double value(const Position& at) const { return static_cast<double>(flat(at, shape) % 97) + 1; }
};
Case random_case(std::mt19937& random, int least_ndim = 1, int smallest = 0) {
  Case c;
  const Mesh mesh = random_mesh(random);
  std::vector<std::int64_t> extents;
  const int ndim = pick(random, least_ndim, 3);
  for (int d = 0; d < ndim; ++d) extents.push_back(pick(random, random() % 8 == 0 ? smallest : 1, 9));
  c.shape = Shape(extents);
  const Dtype dtypes[] = {float32, int16, float64, complex64, uint8};
  const Sharding sharding = random_sharding(random, mesh, ndim);
  c.x = make(c.shape, dtypes[random() % 5], [&](const Position& at) { return c.value(at); });
  if (random() % 6 != 0) c.x = device_put(c.x, sharding);
  c.text = to_string(c.shape) + " " + text_of(sharding);
  return c;
}
std::int64_t wrapped(std::int64_t i, std::int64_t n) { return ((i % n) + n) % n; }

TEST(Roll, turns_a_dim_and_moves_only_the_boundary) {
  std::mt19937 random(21);
  for (int round = 0; round < 30; ++round) {
    const auto c = random_case(random);
    const int dim = pick(random, 0, c.shape.ndim() - 1), shift = pick(random, -20, 20);
    const Array y = roll(c.x, shift, dim);
    EXPECT_THAT(program_of(y), Not(HasSubstr("all-gather")));
    EXPECT_EQ(y.sharding(), c.x.sharding());
    expect_elements(
        y, c.shape,
        [&](Position at) {
          auto& i = at[dim];
          i = wrapped(i - shift, c.shape[dim]);
          return c.value(at);
        },
        c.text);
  }
  const int n = device_count();
  if (n == 1) return;
  const Array x = device_put(zeros({4 * n, 10}), make_mesh({n}, {"x"}), P("x"));
  EXPECT_THAT(program_of(roll(x, 1, 0)), HasSubstr("collective-permute"));
  EXPECT_THAT(program_of(roll(x, 1, 0)), HasSubstr("bytes=40"));
  EXPECT_THAT(program_of(roll(x, 3, 1)), Not(HasSubstr("bytes=")));
}

TEST(Flip, turns_any_dims_around) {
  std::mt19937 random(22);
  for (int round = 0; round < 30; ++round) {
    const auto c = random_case(random);
    std::vector<int> dims;
    for (int d = 0; d < c.shape.ndim(); ++d)
      if (random() % 2) dims.push_back(d);
    const Array y = flip(c.x, Axes(dims));
    EXPECT_THAT(program_of(y), Not(HasSubstr("all-gather")));
    expect_elements(
        y, c.shape,
        [&](Position at) {
          for (int d = 0; d < c.shape.ndim(); ++d)
            if (dims.empty() || std::count(dims.begin(), dims.end(), d)) at[d] = c.shape[d] - 1 - at[d];
          return c.value(at);
        },
        c.text);
  }
}

TEST(Pad, puts_a_value_around) {
  std::mt19937 random(23);
  for (int round = 0; round < 30; ++round) {
    const auto c = random_case(random);
    std::vector<std::pair<int, int>> widths;
    auto result = c.shape;
    for (int d = 0; d < c.shape.ndim(); ++d) {
      widths.push_back({pick(random, 0, 4), pick(random, 0, 4)});
      result[d] += widths.back().first + widths.back().second;
    }
    const Array y = pad(c.x, widths, 7);
    EXPECT_THAT(program_of(y), Not(HasSubstr("all-gather")));
    expect_elements(
        y, result,
        [&](Position at) {
          for (std::size_t d = 0; d < at.size(); ++d) {
            at[d] -= widths[d].first;
            if (at[d] < 0 || at[d] >= c.shape[d]) return 7.0;
          }
          return c.value(at);
        },
        c.text);
  }
  EXPECT_THAT(to_vector<int>(pad(arange(3), {{1, 2}})), ElementsAre(0, 0, 1, 2, 0, 0));
  EXPECT_THAT(error_of<ArgumentError>([] { pad(zeros({2}), {{-1, 0}}); }), HasSubstr("must not be negative"));
  EXPECT_THAT(error_of<ArgumentError>([] {
                pad(zeros({2, 2, 2}), {{1, 0}, {0, 1}});
              }),
              HasSubstr("2 pairs of widths for shape (2, 2, 2)"));
}

TEST(Tile, repeats_the_whole_and_repeat_each_element) {
  std::mt19937 random(24);
  for (int round = 0; round < 40; ++round) {
    const auto c = random_case(random);
    std::vector<int> repeats;
    auto result = c.shape;
    for (int d = 0; d < c.shape.ndim(); ++d) {
      repeats.push_back(pick(random, random() % 6 == 0 ? 0 : 1, 3));
      result[d] *= repeats.back();
    }
    expect_elements(
        tile(c.x, repeats), result,
        [&](Position at) {
          for (std::size_t d = 0; d < at.size(); ++d) at[d] %= c.shape[d];
          return c.value(at);
        },
        c.text);
    const int dim = pick(random, 0, c.shape.ndim() - 1), n = pick(random, 0, 4);
    result = c.shape;
    result[dim] *= n;
    const Array y = repeat(c.x, n, dim);
    EXPECT_THAT(program_of(y), Not(HasSubstr("all-gather")));
    expect_elements(
        y, result,
        [&](Position at) {
          at[dim] /= n;
          return c.value(at);
        },
        c.text);
  }
  EXPECT_THAT(to_vector<int>(tile(arange(2), {2, 2})), ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_THAT(error_of<ArgumentError>([] { tile(zeros({2}), {-1}); }), HasSubstr("-1 is negative"));
}

TEST(Split, gives_equal_parts_or_says_why_not) {
  std::mt19937 random(25);
  for (int round = 0; round < 20; ++round) {
    const auto c = random_case(random);
    const int dim = pick(random, 0, c.shape.ndim() - 1);
    const auto d = static_cast<std::size_t>(dim);
    const int count = c.shape[d] == 0 ? 3 : static_cast<int>(c.shape[d]);
    const auto parts = split(c.x, count, dim);
    auto shape = c.shape;
    shape[d] /= count;
    for (int i = 0; i < count; ++i)
      expect_elements(
          parts[i], shape,
          [&](Position at) {
            at[d] += shape[d] * i;
            return c.value(at);
          },
          c.text);
  }
  const auto parts = split_at(arange(7), {2, 5});
  EXPECT_THAT(to_vector<int>(parts[1]), ElementsAre(2, 3, 4));
  EXPECT_EQ(parts[2].size(), 2);
  EXPECT_THAT(error_of<ShapeError>([] { split(zeros({7}), 2); }),
              HasSubstr("has size 7, which is not 2 equal parts"));
}

TEST(Triangles, and_diagonals_of_any_sharding) {
  std::mt19937 random(26);
  for (int round = 0; round < 40; ++round) {
    const auto c = random_case(random, 2);
    const int k = pick(random, -9, 9);
    const std::size_t n = c.shape.size();
    expect_elements(
        tril(c.x, k), c.shape,
        [&](const Position& at) { return at[n - 1] - at[n - 2] <= k ? c.value(at) : 0.0; }, c.text);
    expect_elements(
        triu(c.x, k), c.shape,
        [&](const Position& at) { return at[n - 1] - at[n - 2] >= k ? c.value(at) : 0.0; }, c.text);
    std::vector<std::int64_t> result(c.shape.begin() + 2, c.shape.end());
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < c.shape[0]; ++i) count += i + k >= 0 && i + k < c.shape[1];
    result.push_back(count);
    const Array y = diagonal(c.x, k);
    expect_elements(
        y, Shape(result),
        [&](const Position& at) {
          const auto i = at.back() + std::max(0, -k);
          Position source = {i, i + k};
          source.insert(source.end(), at.begin(), at.end() - 1);
          return c.value(source);
        },
        c.text + " k=" + std::to_string(k));
    EXPECT_THAT(program_of(y), Not(HasSubstr("all-gather")));
  }
  EXPECT_EQ(item<float>(trace(eye(5))), 5.0f);
  EXPECT_EQ(item<float>(trace(reshape(arange(12.0f), {4, 3}), -1)), 3.0f + 7.0f + 11.0f);
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array x = device_put(zeros({8, 8}), mesh, P("x", None));
  EXPECT_EQ(diagonal(x).sharding(), NamedSharding(mesh, P("x")));
  EXPECT_THAT(program_of(diagonal(x)), Not(HasSubstr("bytes=")));
  EXPECT_THAT(error_of<ShapeError>([] { tril(zeros({3})); }), HasSubstr("no two dimensions"));
}

TEST(Diag, is_a_matrix_of_any_sharding) {
  std::mt19937 random(27);
  for (const int k : {0, 1, -1, 3, -4})
    for (const std::int64_t n : {0, 1, 5, 9}) {
      const Mesh mesh = random_mesh(random);
      const auto size = n + std::abs(k);
      const auto value = [](const Position& at) { return at[0] * at[0] - 3.0; };
      const Array x = device_put(make({n}, float64, value), random_sharding(random, mesh, 1));
      const Sharding wanted = random_sharding(random, mesh, 2);
      const auto element = [&](const Position& at) {
        return at[1] - at[0] == k ? value({std::min(at[0], at[1])}) : 0.0;
      };
      const std::string text = "n " + std::to_string(n) + " k " + std::to_string(k) + " " + text_of(wanted);
      expect_elements(diag(x, k), {size, size}, element, text);
      expect_elements(device_put(diag(x, k), wanted), {size, size}, element, text);
      const Array weights =
          make({size, size}, float64, [](const Position& at) { return at[0] * 10.0 + at[1]; });
      expect_elements(
          grad([&](const Array& y) { return sum(diag(y, k) * weights); })(x), {n},
          [&](const Position& at) { return (at[0] - std::min(0, k)) * 10.0 + at[0] + std::max(0, k); }, text);
      expect_elements(
          grad([&](const Array& y) { return sum(diagonal(y, k) * 2.0); })(weights), {size, size},
          [&](const Position& at) { return at[1] - at[0] == k ? 2.0 : 0.0; }, text);
    }
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array rows = diag(device_put(ones({8}), mesh, P("x")));
  EXPECT_EQ(rows.sharding(), NamedSharding(mesh, P("x", None)));
  EXPECT_THAT(program_of(rows), Not(HasSubstr("bytes=")));
}

}  // namespace
}  // namespace tessera::test
