// Sorting, searching, scans and arg-reductions on any sharding, compared with plain loops.
#include <tessera/grad.hpp>
#include <tessera/transforms.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/sort/select.hpp"
#include "ops/sort/select_by_rounds.hpp"
#include "ops/sort/sort_by_key.hpp"
#include "support/layouts.hpp"

namespace tessera::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
const Dtype real_dtypes[] = {float32, float64, int8,   int16,  int32, int64,
                             uint8,   uint16,  uint32, uint64, bool_};

struct Lines {
  Shape shape;
  int dim;
  Dtype dtype;
  std::vector<double> values;
  Array x;
  std::string text;
  // The line through a position along dim.
  std::vector<double> line(Position at) const {
    std::vector<double> result;
    for (std::int64_t i = 0; i < shape[dim]; ++i) {
      at[dim] = i;
      result.push_back(values[flat(at, shape)]);
    }
    return result;
  }
};
Lines random_lines(std::mt19937& random, int longest = 40) {
  Lines c;
  const Mesh mesh = random_mesh(random);
  const int ndim = pick(random, 1, 3);
  c.dim = pick(random, 0, ndim - 1);
  std::vector<std::int64_t> extents;
  for (int d = 0; d < ndim; ++d)
    extents.push_back(d == c.dim ? pick(random, 1, longest) : pick(random, random() % 9 == 0 ? 0 : 1, 4));
  c.shape = Shape(extents);
  c.dtype = real_dtypes[random() % 11];
  const bool few_values = random() % 2;
  for (std::int64_t i = 0; i < c.shape.elements(); ++i) {
    double v = few_values ? pick(random, 0, 3) : pick(random, 0, 100);
    if (is_bool(c.dtype)) v = v > 1;
    if (is_signed_integer(c.dtype) || is_floating(c.dtype)) v -= few_values ? 2 : 50;
    if (is_floating(c.dtype) && random() % 12 == 0)
      v = random() % 2 ? nan : random() % 2 ? INFINITY : -INFINITY;
    c.values.push_back(v);
  }
  c.x = astype(array(HostArray(c.values, c.shape)), c.dtype);
  const Sharding sharding = random_sharding(random, mesh, ndim);
  if (random() % 6 != 0) c.x = device_put(c.x, sharding);
  c.text =
      name(c.dtype) + " " + to_string(c.shape) + " dim " + std::to_string(c.dim) + " " + text_of(sharding);
  return c;
}
bool sorts_before(double a, double b) { return !std::isnan(a) && (std::isnan(b) || a < b); }
std::vector<std::size_t> order_of(const std::vector<double>& line) {
  std::vector<std::size_t> order(line.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sorts_before(line[a], line[b]); });
  return order;
}

TEST(Sort, any_dtype_dim_and_sharding_stable_nan_last) {
  std::mt19937 random(41);
  for (int round = 0; round < 60; ++round) {
    const auto c = random_lines(random);
    const auto d = static_cast<std::size_t>(c.dim);
    const Array sorted = sort(c.x, c.dim), places = argsort(c.x, c.dim - c.shape.ndim());
    EXPECT_EQ(sorted.sharding(), c.x.sharding());
    EXPECT_TRUE(places.dtype() == int32);
    EXPECT_THAT(program_of(sorted), Not(HasSubstr("all-gather"))) << c.text;
    expect_elements(
        sorted, c.shape,
        [&](const Position& at) {
          const auto line = c.line(at);
          return line[order_of(line)[at[d]]];
        },
        c.text);
    expect_elements(
        places, c.shape, [&](const Position& at) { return static_cast<double>(order_of(c.line(at))[at[d]]); },
        c.text);
  }
}

TEST(ElementsOfSorted, are_those_of_sort_on_any_sharding) {
  std::mt19937 random(44);
  for (int round = 0; round < 60; ++round) {
    auto c = random_lines(random, round % 4 == 0 ? 6000 : 40);
    const int last = c.shape.ndim() - 1;
    c.x = moveaxis(astype(c.x, round % 2 ? float32 : float64), c.dim, last);
    const auto n = c.x.shape()[last];
    const Array sorted = sort(c.x, -1), found = elements_of_sorted(c.x, {0, n / 2, n - 1});
    const auto text = program_of(found);  // the indices found may be gathered, the lines may not
    EXPECT_GE(text.find("all-gather"), text.find("elements_of_sorted(")) << c.text << text;
    const Array expected =
        concatenate({sorted(ellipsis, slice(0, 1)), sorted(ellipsis, slice(n / 2, n / 2 + 1)),
                     sorted(ellipsis, slice(n - 1, n))},
                    -1);
    EXPECT_TRUE(item<bool>(all((found == expected) | (isnan(found) & isnan(expected))))) << c.text;
  }
}

TEST(ElementsByRounds, are_those_of_sort_for_any_split_and_batch) {
  const NamedSharding rows(make_mesh({device_count()}, {"x"}), P("x"));
  for (const Dtype dtype : {float32, float64}) {
    const Array n = arange(3 * 1001);
    const Array lines = astype(where(n % 7 == 0, 0.5, where(n % 500 == 3, NAN, sin(n * 0.37) * 1e3)), dtype);
    const Array x = reshape(lines, {3, 1001}), line = device_put(x(1), rows);
    const std::vector<std::int64_t> places = {0, 17, 500, 998, 1000};
    const auto bits = [](const Array& y) {
      return to_vector<double>(where(isnan(y), 1e9, astype(y, float64)));
    };
    const auto of_sort = [&](const Array& y) { return take(sort(y, -1), array(places), -1); };
    EXPECT_EQ(bits(elements_by_rounds(line, places)), bits(of_sort(line)));
    EXPECT_THAT(program_of(elements_by_rounds(line, places)), testing::Not(testing::HasSubstr("all-gather")));
    const auto each = vmap([&](const Array& y) { return elements_by_rounds(y, places); });
    EXPECT_EQ(bits(each(x)), bits(of_sort(x)));
  }
}

TEST(ElementsOfSorted, have_the_derivatives_of_sort) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array x = device_put(array({3.f, 1.f, 2.f, 1.f, 5.f, 4.f, 1.f, 0.f}), mesh, P("x"));
  const auto by_sort = [](const Array& y) {
    return sum(take(sort(y, -1), array({1, 2, 5}), 0) * array({1.f, 2.f, 4.f}));
  };
  const auto by_select = [](const Array& y) {
    return sum(elements_of_sorted(y, {1, 2, 5}) * array({1.f, 2.f, 4.f}));
  };
  EXPECT_EQ(to_vector<float>(grad(by_select)(x)), to_vector<float>(grad(by_sort)(x)));
}

TEST(Sort, a_long_line_over_all_ranks) {
  std::mt19937 random(42);
  const int p = device_count();
  const Mesh mesh = make_mesh({p}, {"x"});
  for (const std::int64_t n : {1, 2, 1000, 20011}) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < n; ++i)
      values.push_back(n == 1000 ? 7.0f : static_cast<float>(static_cast<int>(random() % 5000)) - 2500.5f);
    const Array x = device_put(array(HostArray(values, {n})), mesh, P("x"));
    std::sort(values.begin(), values.end());
    EXPECT_EQ(to_vector<float>(sort(x)), values);
    if (p == 1 || n < 20000) continue;
    const auto text = program_of(sort(x));
    EXPECT_THAT(text, HasSubstr("all-to-all"));
    EXPECT_THAT(text, Not(HasSubstr("all-gather")));
  }
}

TEST(Sort, complex_numbers_go_by_their_parts) {
  using C = std::complex<float>;
  const std::vector<C> values = {{2, 1},  {1, 5}, {static_cast<float>(nan), 0}, {2, -1}, {1, 4},
                                 {-3, 0}, {1, 4}};
  const Array x = device_put(array(HostArray(values, {7})), make_mesh({device_count()}, {"x"}), P("x"));
  const auto sorted = to_vector<C>(sort(x));
  EXPECT_EQ(sorted[0], C(-3, 0));
  EXPECT_EQ(sorted[1], C(1, 4));
  EXPECT_EQ(sorted[3], C(1, 5));
  EXPECT_EQ(sorted[4], C(2, -1));
  EXPECT_TRUE(std::isnan(sorted[6].real()));
  EXPECT_THAT(to_vector<int>(argsort(x)), ElementsAre(5, 4, 6, 1, 3, 0, 2));
}

TEST(SortByKey, moves_a_payload_of_any_dtype) {
  std::mt19937 random(43);
  for (const Dtype payload_dtype : {float32, int8, complex64, complex128, float64, bool_})
    for (int round = 0; round < 6; ++round) {
      const Mesh mesh = random_mesh(random);
      const Shape shape{pick(random, 1, 3), pick(random, 1, 30)};
      std::vector<std::uint32_t> keys;
      for (std::int64_t i = 0; i < shape.elements(); ++i)
        keys.push_back(static_cast<std::uint32_t>(random() % 7 * 600000000u));
      const auto payload = [&](const Position& at) {
        return static_cast<double>(is_bool(payload_dtype) ? flat(at, shape) % 2 : flat(at, shape) % 100);
      };
      const Sharding sharding = random_sharding(random, mesh, 2);
      const auto [k, v] =
          sort_by_key(device_put(array(HostArray(keys, shape)), sharding),
                      device_put(make(shape, payload_dtype, payload), random_sharding(random, mesh, 2)));
      const auto source = [&](const Position& at) {
        std::vector<double> line;
        for (std::int64_t i = 0; i < shape[1]; ++i) line.push_back(keys[at[0] * shape[1] + i]);
        return Position{at[0], static_cast<std::int64_t>(order_of(line)[at[1]])};
      };
      expect_elements(
          k, shape, [&](const Position& at) { return static_cast<double>(keys[flat(source(at), shape)]); },
          text_of(sharding));
      expect_elements(
          v, shape, [&](const Position& at) { return payload(source(at)); },
          name(payload_dtype) + text_of(sharding));
    }
  EXPECT_THAT(error_of<ShapeError>([] { sort_by_key(zeros({3}), zeros({4})); }),
              HasSubstr("keys of shape (3,) and a payload of shape (4,)"));
}

TEST(TopK, the_largest_first_and_the_first_of_equals) {
  std::mt19937 random(44);
  for (int round = 0; round < 40; ++round) {
    auto c = random_lines(random, 25);
    const int last = c.shape.ndim() - 1;
    c.dim = last;
    const auto n = c.shape.back();
    const int k = pick(random, 0, static_cast<int>(n));
    const auto [values, places] = top_k(c.x, k);
    Shape result = c.shape;
    result[last] = k;
    const auto chosen = [&](const Position& at) {
      const auto line = c.line(at);
      std::vector<std::size_t> order(line.size());
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return sorts_before(line[b], line[a]); });
      return order[at.back()];
    };
    expect_elements(
        values, result, [&](const Position& at) { return c.line(at)[chosen(at)]; },
        c.text + " k=" + std::to_string(k));
    expect_elements(
        places, result, [&](const Position& at) { return static_cast<double>(chosen(at)); },
        c.text + " k=" + std::to_string(k));
  }
  EXPECT_THAT(error_of<ArgumentError>([] { top_k(zeros({3}), 4); }),
              HasSubstr("k is 4, but the last dimension of shape (3,) has 3 elements"));
}

TEST(ArgReduce, the_first_extreme_of_any_sharding) {
  std::mt19937 random(45);
  for (int round = 0; round < 60; ++round) {
    const auto c = random_lines(random, 20);
    const bool max = round % 2;
    const auto better = [&](double a, double b) {
      return std::isnan(a) ? !std::isnan(b) : !std::isnan(b) && (max ? a > b : a < b);
    };
    const auto first_best = [&](const std::vector<double>& line) {
      std::size_t best = 0;
      for (std::size_t i = 1; i < line.size(); ++i)
        if (better(line[i], line[best])) best = i;
      return static_cast<double>(best);
    };
    auto extents = c.shape.vector();
    extents.erase(extents.begin() + c.dim);
    const Array y = max ? argmax(c.x, c.dim) : argmin(c.x, c.dim);
    EXPECT_TRUE(y.dtype() == int32);
    EXPECT_THAT(program_of(y), Not(HasSubstr("all-gather")));
    expect_elements(
        y, Shape(extents),
        [&](Position at) {
          at.insert(at.begin() + c.dim, 0);
          return first_best(c.line(at));
        },
        c.text);
    if (c.shape.elements() == 0) continue;
    const Array all = max ? argmax(c.x) : argmin(c.x);
    EXPECT_EQ(item<std::int64_t>(all), static_cast<std::int64_t>(first_best(c.values))) << c.text;
  }
  EXPECT_EQ(to_string(argmax(zeros({3, 4}), 1, true).shape()), "(3, 1)");
  EXPECT_THAT(error_of<ShapeError>([] { argmax(zeros({0})); }), HasSubstr("there is no element to choose"));
  EXPECT_THAT(error_of<DtypeError>([] { argmin(zeros({2}, complex64)); }), HasSubstr("no order"));
}

TEST(Cumulative, sums_and_products_from_the_start) {
  std::mt19937 random(46);
  for (int round = 0; round < 60; ++round) {
    auto c = random_lines(random, 20);
    if (is_bool(c.dtype)) continue;
    const auto d = static_cast<std::size_t>(c.dim);
    // Small integers, so that sums and products are exact.
    for (auto& v : c.values) v = static_cast<double>(pick(random, 0, 2));
    const bool sums = round % 2;
    if (!sums)
      for (auto& v : c.values) v = random() % 8 == 0 ? 2 : 1;
    const Array x = c.x.is_committed()
                        ? device_put(astype(array(HostArray(c.values, c.shape)), c.dtype), c.x.sharding())
                        : astype(array(HostArray(c.values, c.shape)), c.dtype);
    const Array y = sums ? cumsum(x, c.dim) : cumprod(x, c.dim);
    EXPECT_THAT(program_of(y), Not(HasSubstr("all-gather")));
    expect_elements(
        y, c.shape,
        [&](const Position& at) {
          const auto line = c.line(at);
          double running = sums ? 0 : 1;
          for (std::size_t i = 0; i <= static_cast<std::size_t>(at[d]); ++i)
            sums ? running += line[i] : running *= line[i];
          return running;
        },
        c.text);
  }
  EXPECT_TRUE(cumsum(ones({3}, bool_), 0).dtype() == int32);
}

TEST(SearchSorted, adds_up_the_places_in_the_blocks) {
  std::mt19937 random(47);
  for (int round = 0; round < 30; ++round) {
    const Mesh mesh = random_mesh(random);
    std::vector<float> sorted, values;
    for (int i = pick(random, 0, 30); i > 0; --i) sorted.push_back(static_cast<float>(pick(random, 0, 20)));
    std::sort(sorted.begin(), sorted.end());
    for (int i = 0; i < 12; ++i) values.push_back(static_cast<float>(pick(random, -2, 22)));
    Array s = array(HostArray(sorted, {static_cast<std::int64_t>(sorted.size())})),
          v = array(HostArray(values, {3, 4}));
    if (random() % 3) s = device_put(s, random_sharding(random, mesh, 1));
    if (random() % 3) v = device_put(v, random_sharding(random, mesh, 2));
    for (const bool right : {false, true})
      expect_elements(
          searchsorted(s, v, right ? "right" : "left"), {3, 4},
          [&](const Position& at) {
            const float value = values[at[0] * 4 + at[1]];
            return static_cast<double>((right ? std::upper_bound(sorted.begin(), sorted.end(), value)
                                              : std::lower_bound(sorted.begin(), sorted.end(), value)) -
                                       sorted.begin());
          },
          text_of(s.sharding()) + text_of(v.sharding()));
  }
  EXPECT_THAT(error_of<ShapeError>([] {
                searchsorted(zeros({2, 2}), zeros({2}));
              }),
              HasSubstr("must have one dimension"));
}

TEST(TakeAlongAxis, one_index_per_element_of_a_line) {
  std::mt19937 random(48);
  for (int round = 0; round < 40; ++round) {
    const auto c = random_lines(random, 12);
    const auto d = static_cast<std::size_t>(c.dim);
    Shape list = c.shape;
    list[d] = pick(random, 0, 9);
    const auto n = c.shape[d];
    const auto raw = [&](const Position& at) {
      return static_cast<std::int64_t>((flat(at, list) * 7 + 2) % (2 * n + 2) - n);
    };
    const Mesh mesh = c.x.is_committed() ? c.x.sharding().mesh() : random_mesh(random);
    Array i = make(list, int32, [&](const Position& at) { return static_cast<double>(raw(at)); });
    if (random() % 3) i = device_put(i, random_sharding(random, mesh, list.ndim()));
    expect_elements(
        take_along_axis(c.x, i, c.dim), list,
        [&](const Position& at) {
          const auto k = raw(at);
          return c.line(at)[std::min<std::int64_t>(k < 0 ? k + n : k, n - 1)];
        },
        c.text);
  }
  const Array x = reshape(arange(6), {2, 3});
  EXPECT_THAT(to_vector<int>(take_along_axis(x, array({{1}}), 1)), ElementsAre(1, 4));
}

}  // namespace
}  // namespace tessera::test
