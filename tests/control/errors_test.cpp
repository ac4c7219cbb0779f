// Faults while a loop body runs: failures, the search for NaN, a profile.
#include <tessera/debug.hpp>
#include <tessera/linalg.hpp>

#include "control/loops.hpp"
#include "support/errors.hpp"

namespace tessera::test {
namespace {

TEST(Failure, of_an_op_in_a_body_is_raised_on_all_ranks) {
  const auto f = jit([](const Array& a) {
    return fori_loop(
        0, 10, [](const Array&, const Array& v) { return linalg::cholesky(v); }, a);
  });
  const Array good = device_put(eye(6, float64) * 4.0, line(), P("x"));
  expect_close(f(good), eye(6, float64) * std::pow(4.0, 1.0 / 1024), "values");
  EXPECT_THROW(eval(f(-good)), LinAlgError);
  expect_close(f(good), eye(6, float64) * std::pow(4.0, 1.0 / 1024), "values after a failure");
}

TEST(Failure, the_search_for_nan_looks_into_loops) {
  const auto f = jit([](const Array& x) {
    return fori_loop(
        0, 10, [](const Array& i, const Array& v) { return sqrt(v - i * 0.5); }, x);
  });
  const Array x = device_put(ones({10}), line(), P("x"));
  debug::set_nan_check(true);
  EXPECT_THROW(eval(f(x)), NanError);
  debug::set_nan_check(false);
}

TEST(Profile, steps_inside_a_loop_are_counted_once) {
  const auto f = jit([](const Array& x) {
    return fori_loop(
        0, 30, [](const Array&, const Array& v) { return cumsum(v, 0) * 0.1f; }, x);
  });
  const Array x = ones({10});
  eval(f(x));
  const debug::profile profile;
  eval(f(x));
  EXPECT_GE(profile.steps(), 60);
  EXPECT_LE(profile.steps(), 65);
  EXPECT_THAT(profile.table(), Not(HasSubstr("scan at")));
}

TEST(BadInput, a_carried_value_that_changes) {
  const auto f = [](const Array& x) {
    return fori_loop(
        0, 20,
        [](const Array&, const std::pair<Array, Array>& s) {
          return std::pair{s.first, astype(s.second, float32)};
        },
        std::pair{x, x});
  };
  const auto text = error_of<DtypeError>([&] { jit(f)(spread({3})); });
  EXPECT_THAT(text, HasSubstr("[1]"));
  EXPECT_THAT(text, HasSubstr("float64[3]"));
  EXPECT_THAT(text, HasSubstr("float32[3]"));
  EXPECT_THAT(text, HasSubstr("astype"));
  EXPECT_THAT(text, HasSubstr("errors_test.cpp"));
  const auto g = [](const Array& x) {
    return scan(
               [](const Array& c, const Array& v) {
                 return std::pair{concatenate({c, v}, 0), c};
               },
               x(0), x)
        .first;
  };
  EXPECT_THAT(error_of<ShapeError>([&] { jit(g)(spread({10, 3})); }), HasSubstr("float64[6]"));
}

// Checked outside a trace and in short loops too, which run step by step.
TEST(BadInput, a_carried_value_that_changes_is_refused_in_every_loop) {
  const auto doubled = [](const Array&, const Array& v) { return concatenate({v, v}, 0); };
  for (const int steps : {1, 2, 9}) {
    const auto f = [&](const Array& x) { return fori_loop(0, steps, doubled, x); };
    EXPECT_THAT(error_of<ShapeError>([&] { f(spread({3})); }), HasSubstr("comes back as float64[6]"))
        << steps;
    EXPECT_THAT(error_of<ShapeError>([&] { jit(f)(spread({3})); }), HasSubstr("comes back as float64[6]"))
        << steps;
  }
  EXPECT_THAT(error_of<DtypeError>([&] {
                fori_loop(
                    0, 2, [](int, const Array& v) { return astype(v, float32); }, spread({3}));
              }),
              HasSubstr("astype(..., float64)"));
  EXPECT_THAT(error_of<ShapeError>([&] {
                scan(
                    [](const Array& c, const Array& v) {
                      return std::pair{concatenate({c, c}, 0), v};
                    },
                    spread({3}), spread({4}));
              }),
              HasSubstr("float64[6]"));
  EXPECT_THAT(error_of<DtypeError>([&] {
                while_loop([](const Array& v) { return sum(v) > -1; },
                           [](const Array& v) { return astype(v, int32); }, spread({3}));
              }),
              HasSubstr("while_loop"));
}

TEST(Carried, a_number_takes_the_dtype_of_what_it_meets) {
  const Array grown = fori_loop(
      0, 3, [](int, const Array& v) { return v + ones({}, float64); }, Array(1));
  EXPECT_EQ(grown.dtype(), float64);
  const Array kept = fori_loop(
      0, 2, [](int, const Array&) { return Array(2.5); }, ones({}, float64));
  EXPECT_EQ(kept.dtype(), float64);
  EXPECT_FALSE(kept.is_weakly_typed());
}

TEST(BadInput, numbers_that_change) {
  const auto f = [](const Array& x) {
    return fori_loop(
               0, 20,
               [](const Array&, const std::pair<Array, int>& s) {
                 return std::pair{s.first, s.second + 1};
               },
               std::pair{x, 0})
        .first;
  };
  EXPECT_THAT(error_of<ArgumentError>([&] { jit(f)(spread({3})); }), HasSubstr("must be an Array"));
}

TEST(BadInput, branches_that_differ) {
  const auto f = [](const Array& x) {
    return cond(
        sum(x) > 0.0, [](const Array& v) { return v; }, [](const Array& v) { return sum(v); }, x);
  };
  EXPECT_THAT(error_of<ArgumentError>([&] { jit(f)(spread({3})); }), HasSubstr("float64[3]"));
  EXPECT_THAT(error_of<ShapeError>([&] {
                jit([](const Array& x) {
                  return cond(
                      x > 0.0, [](const Array& v) { return v; }, [](const Array& v) { return -v; }, x);
                })(spread({3}));
              }),
              HasSubstr("scalar"));
}

TEST(BadInput, conditions) {
  EXPECT_THAT(error_of<DtypeError>([&] {
                jit([](const Array& x) {
                  return while_loop([](const Array& v) { return sum(v); }, [](const Array& v) { return v; },
                                    x);
                })(spread({3}));
              }),
              HasSubstr("bool"));
  EXPECT_THAT(error_of<ShapeError>([&] {
                jit([](const Array& x) {
                  return scan(
                             [](const Array& c, const std::vector<Array>& v) {
                               return std::pair{c + v[0], c};
                             },
                             x(0), std::vector{x, Array(x(slice(1)))})
                      .first;
                })(spread({12}));
              }),
              HasSubstr("leading sizes"));
}

}  // namespace
}  // namespace tessera::test
