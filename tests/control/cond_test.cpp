// cond in compiled functions: the chosen branch, its derivatives and batches.
#include <tessera/debug.hpp>

#include "control/loops.hpp"

namespace tessera::test {
namespace {

constexpr auto choose = [](const Array& x) {
  return cond(
      sum(x) > 0.0,
      [](const Array& v) {
        return std::pair{v * 2.0, sum(v)};
      },
      [](const Array& v) {
        return std::pair{sin(v), ones({}, float64)};
      },
      x);
};

TEST(Cond, the_chosen_branch_alone_runs) {
  const auto f = jit([](const Array& x) {
    return cond(
        sum(x) > 0.0, [](const Array& v) { return v - mean(v); }, [](const Array& v) { return v; }, x);
  });
  const Array x = device_put(ones({100}), line(), P("x"));
  const debug::CommStats none;
  eval(f(-x));  // compiles
  debug::CommStats stats;
  eval(f(-x));
  const auto without = stats.bytes();
  stats.restart();
  eval(f(x));
  if (device_count() > 1) {
    EXPECT_GT(stats.bytes(), without);
  }
  EXPECT_EQ(to_vector<float>(f(x))[3], 0.0f);
  EXPECT_EQ(to_vector<float>(f(-x))[3], -1.0f);
}

TEST(Cond, compiled_is_the_branch_outside) {
  for (const double sign : {1.0, -1.0})
    for (const auto& x : layouts_of(spread({7, 3}) * 0.01 + sign)) {
      const auto [a, b] = jit(choose)(x);
      const auto [ea, eb] = choose(x);
      expect_close(a, ea, "array");
      expect_close(b, eb, "scalar");
    }
}

TEST(Cond, results_meet_in_the_cheaper_place) {
  const auto f = jit([](const Array& p, const Array& x, const Array& y) {
    return cond(
        p, [&] { return x * 1.0; }, [&] { return y * 1.0; });
  });
  const Array x = device_put(ones({64}), line(), P("x")), y = device_put(ones({64}), line(), P());
  const auto compiled = f.lower(ones({}, bool_), x, y).compile();
  EXPECT_EQ(compiled.output_shardings()[0],
            NamedSharding(line(), P("x")));  // slicing a replicated array moves nothing
  EXPECT_EQ(compiled.explanation().bytes(), 0);
}

TEST(Cond, gradients_flow_through_the_chosen_branch_and_its_captures) {
  const auto f = [](const Array& x, const Array& w) {
    const auto [a, b] = cond(
        sum(x) > 0.0,
        [&](const Array& v) {
          return std::pair{v * w, sum(v * v)};
        },
        [&](const Array& v) {
          return std::pair{exp(v), sum(w)};
        },
        x);
    return sum(a * a) + b;
  };
  for (const double sign : {1.0, -1.0}) {
    const Array x = spread({6}) * 0.1 + sign, w = spread({6}, -2, 2, 9);
    for (const auto& placed : layouts_of(x)) {
      const auto [gx, gw] = jit(grad<0, 1>(f))(placed, w);
      const auto [ex, ew] = grad<0, 1>(f)(x, w);
      expect_close(gx, ex, "x");
      expect_close(gw, ew, "w");
    }
    const auto pushed = jit([&](const Array& a, const Array& t) {
      return jvp(f, std::tuple(a, w), std::tuple(t, zeros_like(w))).second;
    })(x, w);
    expect_close(pushed, sum(grad(f)(x, w) * w), "jvp");
  }
}

TEST(Cond, mapped_over_the_predicate_selects_per_example) {
  const Array x = spread({9, 4});
  const auto f = [](const Array& v) {
    return cond(
        sum(v) > 0.0, [](const Array& a) { return a * 2.0; }, [](const Array& a) { return sin(a); }, v);
  };
  std::vector<Array> rows;
  for (int i = 0; i < 9; ++i) rows.push_back(f(x(i)));
  for (const auto& placed : layouts_of(x)) {
    expect_close(vmap(f)(placed), stack(rows, 0), "vmap");
    expect_close(jit([&](const Array& a) { return vmap(f)(a); })(placed), stack(rows, 0), "vmap in jit");
  }
}

TEST(Cond, mapped_with_one_predicate_stays_a_branch) {
  const auto f = jit([](const Array& p, const Array& x) {
    return vmap([&](const Array& v) {
      return cond(
          p > 0.0, [](const Array& a) { return a * sum(a); }, [](const Array& a) { return sin(a); }, v);
    })(x);
  });
  const Array x = spread({9, 4}), p = ones({}, float64);
  EXPECT_THAT(f.lower(p, x).compile().as_text(), HasSubstr("where true"));
  expect_close(f(p, x), x * sum(x, 1, true), "true");
  expect_close(f(-p, x), sin(x), "false");
}

TEST(Cond, outside_a_trace_branches_of_other_shapes_and_dtypes_are_refused_whichever_runs) {
  const Array x = spread({4});
  for (const bool holds : {true, false}) {
    const auto shapes = [&] {
      return cond(
          ones({}, bool_) == holds, [&] { return x; },
          [&] {
            return concatenate({x, x});
          });
    };
    const auto dtypes = [&] {
      return cond(
          ones({}, bool_) == holds, [&] { return x; }, [&] { return astype(x, int32); });
    };
    EXPECT_THROW(shapes(), ArgumentError);
    EXPECT_THROW(dtypes(), ArgumentError);
  }
}

TEST(Cond, outside_a_trace_a_number_takes_the_dtype_of_the_other_branch) {
  const auto f = [](const Array& p, const Array& x) {
    return cond(
        p, [&] { return sum(x); }, [] { return Array(1); });
  };
  const Array x = spread({4});
  for (const bool holds : {true, false})
    EXPECT_EQ(f(ones({}, bool_) == holds, x).dtype(), jit(f)(ones({}, bool_) == holds, x).dtype());
}

TEST(Cond, outside_a_trace_the_other_branch_does_not_print) {
  int called = 0;
  const Array x = ones({2});
  const auto tell = [&](const Array& v) {
    debug::callback([&](const HostArray&) { ++called; }, v);
    return v;
  };
  eval({cond(
      ones({}, bool_), [](const Array& v) { return v; }, tell, x)});
  EXPECT_EQ(called, 0);
}

}  // namespace
}  // namespace tessera::test
