// scan in compiled functions: values, layouts of carries and stacks, traffic.
#include "control/loops.hpp"

namespace tessera::test {
namespace {

TEST(Scan, compiled_is_the_loop_outside) {
  const Array w = spread({5, 5}, -0.5, 0.5, 1), h0 = spread({5}, -1, 1, 2), xs = spread({13, 5});
  const auto [h, ys] = run_recurrence(w, h0, xs);
  for (const auto& placed_w : layouts_of(w))
    for (const auto& placed_xs : layouts_of(xs)) {
      const auto [jitted_h, jitted_ys] = jit(run_recurrence)(placed_w, h0, placed_xs);
      expect_close(jitted_h, h, "carry");
      expect_close(jitted_ys, ys, "stack");
    }
}

// The result types are those of a step, although none runs.
TEST(Scan, of_no_steps_gives_empty_stacks) {
  const auto step = [](const Array& sum, const Array& x) {
    return std::pair{sum + x, std::vector<Array>{stack({x, sum}), x > 0}};
  };
  const auto run = [&](const Array& xs) { return scan(step, zeros({3}), xs); };
  for (const auto& [last, stacks] : {run(zeros({0, 3})), jit(run)(zeros({0, 3}))}) {
    EXPECT_EQ(to_vector<float>(last), (std::vector<float>{0, 0, 0}));
    EXPECT_EQ(stacks[0].shape(), (Shape{0, 2, 3}));
    EXPECT_EQ(stacks[1].shape(), (Shape{0, 3}));
    EXPECT_EQ(stacks[1].dtype(), bool_);
    EXPECT_TRUE(to_vector<float>(stacks[0]).empty());
  }
}

TEST(Scan, results_lie_where_they_are_said_to) {
  const Array w = device_put(spread({5, 5}), line(), P("x")), h0 = device_put(spread({5}), line(), P()),
              xs = spread({13, 5});
  Sharding said = h0.sharding(), said_ys = said;
  const auto f = jit([&](const Array& a, const Array& b, const Array& c) {
    auto result = run_recurrence(a, b, c);
    said = result.first.sharding(), said_ys = result.second.sharding();
    return result;
  });
  const auto [h, ys] = f(w, h0, xs);
  EXPECT_EQ(h.sharding(), said);
  EXPECT_EQ(ys.sharding(), said_ys);
}

TEST(Scan, an_uncommitted_carry_follows_the_body) {
  const auto f = jit([](const Array& xs) {
    return scan(
        [](const Array& c, const Array& x) {
          return std::pair{c + x, sum(c)};
        },
        zeros({40}, float64), xs);
  });
  const Array xs = device_put(spread({12, 40}), line(), P(None, "x"));
  const auto compiled = f.lower(xs).compile();
  EXPECT_EQ(compiled.output_shardings()[0], NamedSharding(line(), P("x")));
  EXPECT_EQ(compiled.explanation().calls("all-gather"), 0);
}

TEST(Scan, stacks_split_along_the_steps_are_turned_where_that_moves_less) {
  const auto f = jit([](const Array& xs) {
    return scan(
               [](const Array& c, const Array& x) {
                 return std::pair{c + x, sum(c)};
               },
               zeros({40}, float64), xs)
        .first;
  });
  const Array xs = device_put(spread({12, 40}), line(), P("x"));
  const auto compiled = f.lower(xs).compile();
  EXPECT_EQ(compiled.explanation().calls("all-gather"), 0) << compiled.as_text();
  EXPECT_EQ(compiled.output_shardings()[0], NamedSharding(line(), P("x")));
  expect_close(compiled(xs), sum(xs, 0), "sum");
}

TEST(Scan, a_committed_carry_goes_where_the_loop_moves_less) {
  const auto f = jit([](const Array& c0, const Array& xs) {
    return scan([](const Array& c, const Array& x) { return std::pair{c * 0.5 + x, sum(c)}; }, c0, xs).first;
  });
  const Array c0 = device_put(spread({40}), line(), P()),
              xs = device_put(spread({12, 40}), line(), P(None, "x"));
  EXPECT_EQ(f.lower(c0, xs).compile().explanation().calls("all-gather"), 0);
}

TEST(Scan, what_is_computed_before_the_loop_lies_where_the_body_reads_it) {
  const auto f = jit([](const Array& x) {
    return fori_loop(
        0, 20, [](const Array&, const Array& v) { return v * 0.5 + sin(arange(0.0, 1000.0, 1.0)); }, x);
  });
  const Array x = device_put(spread({1000}), line(), P("x"));
  const auto compiled = f.lower(x).compile();
  EXPECT_LE(compiled.memory_analysis().peak_bytes, 6 * ((1000 + device_count() - 1) / device_count()) * 8)
      << compiled.as_text();
  EXPECT_LT(compiled.as_text().find("sin"), compiled.as_text().find("20 times"));
  Array expected = x;
  for (int i = 0; i < 20; ++i) expected = expected * 0.5 + sin(arange(0.0, 1000.0, 1.0));
  expect_close(compiled(x), expected, "values");
}

TEST(Scan, what_does_not_change_is_computed_once) {
  const auto f = jit([](const Array& a, const Array& xs) {
    return scan(
               [&](const Array& c, const Array& x) {
                 return std::pair{c * 0.5 + matmul(exp(a), x), c};
               },
               zeros({6}, float64), xs)
        .first;
  });
  const auto text = f.lower(spread({6, 6}), spread({11, 6})).compile().as_text();
  EXPECT_LT(text.find("exp"), text.find("11 times")) << text;
}

TEST(Scan, trees_of_several_dtypes_and_nothing_stacked) {
  using State = std::map<std::string, Array>;
  const auto f = [](const Array& x, const Array& n) {
    return scan(
        [](const State& s, const std::pair<Array, Array>& entry) {
          return std::pair{State{{"count", s.at("count") + entry.second}, {"sum", s.at("sum") + entry.first}},
                           std::vector<Array>{}};
        },
        State{{"count", zeros({}, int32)}, {"sum", zeros({3})}}, std::pair{x, n});
  };
  const Array x = astype(spread({10, 3}), float32), n = arange(10);
  const auto expected = f(x, n).first, got = jit(f)(x, n).first;
  EXPECT_EQ(item<int>(got.at("count")), 45);
  expect_close(got.at("sum"), expected.at("sum"), "sum", 1e-5);
}

TEST(Scan, an_entry_may_be_carried_as_it_is) {
  const auto f = [](const Array& xs) {
    return scan(
        [](const Array& c, const Array& x) {
          return std::pair{x, c * 2.0};
        },
        zeros({9}, float64), xs);
  };
  const Array xs = device_put(spread({11, 9}), line(), P(None, "x"));
  const auto before = to_vector<double>(xs);
  const auto [c, ys] = jit(f)(xs);
  const auto [expected_c, expected_ys] = f(xs);
  expect_close(c, expected_c, "carry");
  expect_close(ys, expected_ys, "stack");
  EXPECT_EQ(to_vector<double>(xs), before);
}

}  // namespace
}  // namespace tessera::test
