// Index arrays and x.at(...): compared with NumPy's values for any sharding of the array, the indices and the
// updates.
#include "support/layouts.hpp"

namespace tessera::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

double value_of(const Position& at, const Shape& shape) {
  return static_cast<double>(flat(at, shape) % 101) + 1;
}

Array maybe_put(std::mt19937& random, const Array& x, const Mesh& mesh) {
  return random() % 4 == 0 ? x : device_put(x, random_sharding(random, mesh, x.ndim()));
}

TEST(Gather, by_one_index_array_in_any_dim) {
  std::mt19937 random(31);
  const Dtype dtypes[] = {float32, bool_, int64, complex128, uint8};
  for (int round = 0; round < 60; ++round) {
    const Mesh mesh = random_mesh(random);
    const int ndim = pick(random, 1, 3), dim = pick(random, 0, ndim - 1);
    std::vector<std::int64_t> extents, list;
    for (int d = 0; d < ndim; ++d) extents.push_back(pick(random, 1, 8));
    const Shape shape(extents);
    for (int d = pick(random, 0, 2); d > 0; --d) list.push_back(pick(random, random() % 5 == 0 ? 0 : 1, 6));
    const auto n = extents[dim];
    // Some are negative, some out of range: the latter are clamped.
    const auto raw = [&](const Position& at) {
      return static_cast<std::int64_t>((flat(at, Shape(list)) * 7 + 3) % (2 * n + 3) - n);
    };
    const Array i = maybe_put(random,
                              make(Shape(list), round % 2 ? int32 : int64,
                                   [&](const Position& at) { return static_cast<double>(raw(at)); }),
                              mesh);
    const Dtype dtype = dtypes[random() % 5];
    const auto value = [&](const Position& at) {
      return is_bool(dtype) ? static_cast<double>(flat(at, shape) % 2) : value_of(at, shape);
    };
    const Array x = maybe_put(random, make(shape, dtype, value), mesh);
    std::vector<std::int64_t> result(extents.begin(), extents.begin() + dim);
    result.insert(result.end(), list.begin(), list.end());
    result.insert(result.end(), extents.begin() + dim + 1, extents.end());
    expect_elements(
        take(x, i, dim), Shape(result),
        [&](const Position& at) {
          const auto from = at.begin() + dim;
          auto k = raw(Position(from, from + static_cast<std::ptrdiff_t>(list.size())));
          k = std::clamp<std::int64_t>(k < 0 ? k + n : k, 0, n - 1);
          Position source(at.begin(), from);
          source.push_back(k);
          source.insert(source.end(), from + static_cast<std::ptrdiff_t>(list.size()), at.end());
          return value(source);
        },
        "round " + std::to_string(round) + " " + to_string(shape) + text_of(x.sharding()) +
            text_of(i.sharding()));
  }
}

TEST(Gather, several_index_arrays_put_their_dims_where_num_py_does) {
  std::mt19937 random(32);
  const Shape shape{4, 5, 6};
  const auto x_value = [&](std::int64_t a, std::int64_t b, std::int64_t c) {
    return value_of({a, b, c}, shape);
  };
  for (int round = 0; round < 20; ++round) {
    const Mesh mesh = random_mesh(random);
    const Array x = maybe_put(
        random, make(shape, float32, [&](const Position& at) { return value_of(at, shape); }), mesh);
    const Array i = maybe_put(
        random, make({3, 1}, int32, [](const Position& at) { return static_cast<double>(at[0]); }), mesh);
    const Array j = maybe_put(
        random, make({2}, int32, [](const Position& at) { return static_cast<double>(4 - at[0]); }), mesh);
    const std::string what = text_of(x.sharding());
    expect_elements(
        x(i, j), {3, 2, 6}, [&](const Position& at) { return x_value(at[0], 4 - at[1], at[2]); }, what);
    expect_elements(
        x(slice(), i, j), {4, 3, 2}, [&](const Position& at) { return x_value(at[0], at[1], 4 - at[2]); },
        what);
    expect_elements(
        x(i, slice(1, 4), j), {3, 2, 3},
        [&](const Position& at) { return x_value(at[0], at[2] + 1, 4 - at[1]); }, what);
    expect_elements(
        x(1, slice(), j), {2, 5}, [&](const Position& at) { return x_value(1, at[1], 4 - at[0]); }, what);
    expect_elements(
        x(slice(), 2, j), {4, 2}, [&](const Position& at) { return x_value(at[0], 2, 4 - at[1]); }, what);
    expect_elements(
        x(newaxis, slice(None, None, -1), j), {1, 4, 2, 6},
        [&](const Position& at) { return x_value(3 - at[1], 4 - at[2], at[3]); }, what);
    expect_elements(
        x(j(0), ellipsis), {5, 6}, [&](const Position& at) { return x_value(3, at[0], at[1]); },
        what);  // 4 is clamped to 3
    // Another part between index arrays separates them, even if it matches no dim.
    expect_elements(
        x(slice(), j, ellipsis, 2), {2, 4}, [&](const Position& at) { return x_value(at[1], 4 - at[0], 2); },
        what);
    expect_elements(
        x(slice(), j, newaxis, 2), {2, 4, 1},
        [&](const Position& at) { return x_value(at[1], 4 - at[0], 2); }, what);
  }
}

TEST(Gather, a_split_list_reads_a_split_array_without_making_either_whole) {
  const int n = device_count();
  const Mesh mesh = make_mesh({n}, {"x"});
  const Shape shape{50 * n + 3, 4};
  const auto target = [&](std::int64_t i) { return (i * 37 + 11) % shape[0]; };
  const Array x =
      device_put(make(shape, float32, [&](const Position& at) { return value_of(at, shape); }), mesh, P("x"));
  const Array i = device_put(
      make({60 * n}, int32, [&](const Position& at) { return static_cast<double>(target(at[0])); }), mesh,
      P("x"));
  const Array y = x(i);
  EXPECT_EQ(y.sharding(), NamedSharding(mesh, P("x", None)));
  expect_elements(
      y, {60 * n, 4},
      [&](const Position& at) {
        return value_of({target(at[0]), at[1]}, shape);
      },
      "rows");
  const Array order = argsort(x, 0), sorted = take_along_axis(x, order, 0);
  EXPECT_EQ(to_vector<float>(sorted), to_vector<float>(sort(x, 0)));
  EXPECT_EQ(sorted.sharding(), x.sharding());
  // An evaluated array has no program, so the expressions are repeated. A position costs 8 bytes, so on few
  // ranks replicating one side may be cheaper.
  for (const auto& [text, least_ranks] :
       {std::pair{program_of(x(i)), 3}, std::pair{program_of(take_along_axis(x, order, 0)), 5}}) {
    if (n < least_ranks) continue;
    EXPECT_THAT(text, HasSubstr("all-to-all"));
    EXPECT_THAT(text, Not(HasSubstr("all-gather")));
  }
}

TEST(At, replaces_any_box_of_any_sharding) {
  std::mt19937 random(33);
  for (int round = 0; round < 60; ++round) {
    const Mesh mesh = random_mesh(random);
    const Shape shape{pick(random, 1, 9), pick(random, 1, 9)};
    const Array x = maybe_put(
        random, make(shape, float32, [&](const Position& at) { return value_of(at, shape); }), mesh);
    // The box: rows a, a+s, ... from column c on, upwards or downwards.
    const std::int64_t s = pick(random, 1, 3), a = pick(random, 0, static_cast<int>(shape[0]) - 1),
                       c = pick(random, 0, static_cast<int>(shape[1]) - 1);
    std::vector<std::int64_t> rows;
    for (auto r = a; r < shape[0]; r += s) rows.push_back(r);
    const bool downwards = round % 3 == 0;
    const auto n = static_cast<std::int64_t>(rows.size());
    if (downwards) std::reverse(rows.begin(), rows.end());
    const Slice part =
        downwards ? slice(rows[0], a == 0 ? SliceBound(None) : SliceBound(a - 1), -s) : slice(a, None, s);
    const Shape v_shape{n, shape[1] - c};
    const Array v =
        maybe_put(random,
                  make(v_shape, float32,
                       [&](const Position& at) { return -1 - static_cast<double>(flat(at, v_shape)); }),
                  mesh);
    const auto expected = [&](const std::function<double(double, double)>& f) {
      return [&, f](const Position& at) {
        const auto found = std::find(rows.begin(), rows.end(), at[0]);
        if (found == rows.end() || at[1] < c) return value_of(at, shape);
        return f(value_of(at, shape),
                 -1 - static_cast<double>(flat({found - rows.begin(), at[1] - c}, v_shape)));
      };
    };
    const std::string what = "round " + std::to_string(round) + " " + to_string(shape) +
                             text_of(x.sharding()) + " step " + std::to_string(s);
    const At place = x.at(part, slice(c, None));
    const Array set = place.set(v);
    if (x.is_committed()) {
      EXPECT_EQ(set.sharding(), x.sharding()) << what;
    }
    EXPECT_THAT(program_of(set), Not(HasSubstr("all-gather"))) << what;
    expect_elements(set, shape, expected([](double, double b) { return b; }), what);
    expect_elements(place.add(v), shape, expected([](double a, double b) { return a + b; }), what);
    expect_elements(place.subtract(v), shape, expected([](double a, double b) { return a - b; }), what);
    expect_elements(place.multiply(v), shape, expected([](double a, double b) { return a * b; }), what);
    expect_elements(place.divide(v), shape, expected([](double a, double b) {
                      return static_cast<double>(static_cast<float>(a) / static_cast<float>(b));
                    }),
                    what);
    expect_elements(place.min(v), shape, expected([](double a, double b) { return std::min(a, b); }), what);
    expect_elements(place.max(-v), shape, expected([](double a, double b) { return std::max(a, -b); }), what);
    expect_elements(
        place.get(), v_shape,
        [&](const Position& at) {
          return value_of({rows[at[0]], at[1] + c}, shape);
        },
        what);
    expect_elements(
        x.at(a).set(5), shape, [&](const Position& at) { return at[0] == a ? 5.0 : value_of(at, shape); },
        what);
  }
}

TEST(At, scatters_by_index_arrays) {
  std::mt19937 random(34);
  for (int round = 0; round < 40; ++round) {
    const Mesh mesh = random_mesh(random);
    const Shape shape{pick(random, 1, 8), 3, pick(random, 1, 5)};
    const auto n = shape[2];
    const Array x = maybe_put(
        random, make(shape, float64, [&](const Position& at) { return value_of(at, shape); }), mesh);
    const int count = pick(random, 0, 9);
    const auto target = [&](std::int64_t k) {
      return (k * 5 + round) % (2 * n + 2) - n;
    };  // repeats, negatives, and n, n + 1: dropped
    const Array i = maybe_put(
        random, make({count}, int32, [&](const Position& at) { return static_cast<double>(target(at[0])); }),
        mesh);
    const Shape v_shape{shape[0], count};
    const Array v =
        maybe_put(random,
                  make(v_shape, float64,
                       [&](const Position& at) { return static_cast<double>(2 + flat(at, v_shape) % 5); }),
                  mesh);
    const auto expected = [&](const std::function<double(double, double)>& f) {
      return [&, f](const Position& at) {
        double result = value_of(at, shape);
        if (at[1] != 1) return result;
        for (std::int64_t k = 0; k < count; ++k) {
          const auto t = target(k) < 0 ? target(k) + n : target(k);
          if (t == at[2]) result = f(result, static_cast<double>(2 + flat({at[0], k}, v_shape) % 5));
        }
        return result;
      };
    };
    const std::string what = "round " + std::to_string(round) + " " + to_string(shape) +
                             text_of(x.sharding()) + text_of(i.sharding()) + text_of(v.sharding());
    const At place = x.at(slice(), 1, i);
    expect_elements(place.set(v), shape, expected([](double, double b) { return b; }), what);
    expect_elements(place.add(v), shape, expected([](double a, double b) { return a + b; }), what);
    expect_elements(place.subtract(v), shape, expected([](double a, double b) { return a - b; }), what);
    expect_elements(place.multiply(v), shape, expected([](double a, double b) { return a * b; }), what);
    expect_elements(place.min(v), shape, expected([](double a, double b) { return std::min(a, b); }), what);
    expect_elements(place.max(v), shape, expected([](double a, double b) { return std::max(a, b); }), what);
  }
  EXPECT_THAT(to_vector<float>(ones({3}).at(array({0, 0, 2})).divide(2)), ElementsAre(0.25f, 1.0f, 0.5f));
}

// A histogram: a long split list, and few positions to add to. The sums are communicated, not the list.
TEST(At, adding_a_split_list_to_few_places_moves_the_sums) {
  const int n = device_count();
  const Mesh mesh = make_mesh({n}, {"x"});
  const std::int64_t count = 200 * n + 1;
  const auto bin = [](std::int64_t k) { return k * 7 % 11; };  // 10 is out of range: dropped
  const Array i =
      device_put(make({count}, int32, [&](const Position& at) { return static_cast<double>(bin(at[0])); }),
                 mesh, P("x"));
  const Array v = device_put(
      make({count, 2}, float64, [](const Position& at) { return static_cast<double>(at[0] % 5 + at[1]); }),
      mesh, P("x"));
  double sums[10][2] = {};
  std::int64_t counts[10] = {};
  for (std::int64_t k = 0; k < count; ++k) {
    if (bin(k) > 9) continue;
    ++counts[bin(k)];
    for (const int c : {0, 1}) sums[bin(k)][c] += static_cast<double>(k % 5 + c);
  }
  expect_elements(
      zeros({10}, int32).at(i).add(1), {10},
      [&](const Position& at) { return static_cast<double>(counts[at[0]]); }, "counts");
  expect_elements(
      ones({10, 2}, float64).at(i).add(v), {10, 2},
      [&](const Position& at) { return 1 + sums[at[0]][at[1]]; }, "sums");
  expect_elements(
      ones({2, 10}, float64).at(slice(), i).subtract(v.T()), {2, 10},
      [&](const Position& at) { return 1 - sums[at[1]][at[0]]; }, "of rows");
  if (n > 1) {
    const auto text = program_of(zeros({10}, int32).at(i).add(1));
    EXPECT_THAT(text, HasSubstr("all-reduce"));
    EXPECT_THAT(text, Not(HasSubstr("all-gather")));
  }
  // A split target receives its own part of the sums.
  const Array target = device_put(zeros({16 * n}, float64), mesh, P("x"));
  const Array summed = target.at(i).add(1);
  EXPECT_EQ(summed.sharding(), target.sharding());
  if (n > 1) {
    const auto text = program_of(target.at(i).add(1));
    EXPECT_THAT(text, HasSubstr("reduce-scatter"));
    EXPECT_THAT(text, Not(HasSubstr("all-gather")));
  }
}

TEST(At, a_mask_chooses_elements) {
  const Array x = arange(5);
  EXPECT_THAT(to_vector<int>(x.at(x > 2).set(-1)), ElementsAre(0, 1, 2, -1, -1));
  EXPECT_THAT(to_vector<int>(x.at(x > 2).add(10)), ElementsAre(0, 1, 2, 13, 14));
  EXPECT_THAT(error_of<IndexError>([&] { return x.at(ones({4}, bool_)).set(1); }),
              HasSubstr("the mask has shape (4,), the array (5,)"));
}

TEST(At, a_value_that_does_not_fit_is_said_to_stand_where_the_user_wrote_it) {
  const auto text = error_of<ShapeError>([] { return zeros({4, 3}).at(slice(0, 2)).add(ones({5, 3})); });
  EXPECT_THAT(text, HasSubstr("at_test.cpp:"));
  EXPECT_THAT(text, HasSubstr("(2, 3) and (5, 3)"));
}

TEST(At, keeps_the_dtype_and_does_not_change_its_array) {
  const Array x = arange(3);
  EXPECT_TRUE(x.at(0).set(2.75).dtype() == int32);
  EXPECT_THAT(to_vector<int>(x.at(0).set(2.75)), ElementsAre(2, 1, 2));
  EXPECT_THAT(to_vector<int>(x), ElementsAre(0, 1, 2));
  EXPECT_THAT(error_of<DtypeError>([&] { return x.at(0).set(std::complex<double>(0, 1)); }),
              HasSubstr("complex values do not fit"));
  EXPECT_THAT(error_of<IndexError>([&] { return x.at(3).set(1); }), HasSubstr("index 3 is out of bounds"));
  EXPECT_THAT(error_of<ShapeError>([&] { return x.at(slice(0, 2)).set(zeros({3})); }),
              HasSubstr("does not broadcast"));
}

}  // namespace
}  // namespace tessera::test
