// Branches and loops of compiled functions, against the same functions outside a trace, where they are C++
// loops and branches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/collectives.hpp>
#include <tessera/debug.hpp>
#include <tessera/linalg.hpp>
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>
#include <tessera/transforms.hpp>

#include <chrono>
#include <cmath>

#include "support/op_samples.hpp"
#include "types/buffer.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;
using testing::Not;

Mesh line() { return make_mesh({device_count()}, {"x"}); }
Array spread(Shape shape, double low = -1, double high = 1, unsigned seed = 3) {
  OpSample sample;
  sample.operands = {{std::move(shape), low, high}};
  return operands_of(sample, seed)[0];
}
void expect_close(const Array& a, const Array& b, const char* what, double tolerance = 1e-12) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  ASSERT_EQ(a.dtype(), b.dtype()) << what;
  const auto x = to_vector<double>(a), y = to_vector<double>(b);
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(x[i], y[i], tolerance * std::max(1.0, std::abs(y[i]))) << what << " [" << i << "]";
}
// How a jitted function's one array argument may lie.
std::vector<Array> layouts_of(const Array& x) {
  std::vector<Array> all{x, device_put(x, line(), P())};
  for (int d = 0; d < x.ndim(); ++d) {
    std::vector<DimSpec> dims(x.ndim(), DimSpec(None));
    dims[d] = DimSpec("x");
    all.push_back(device_put(x, NamedSharding(line(), PartitionSpec(dims))));
  }
  return all;
}

// ---- fori_loop ----
constexpr auto relax = [](const Array& x) {
  return fori_loop(
      0, 20, [](const Array& i, const Array& v) { return v * 0.5 + sin(v) / (i + 1.0); }, x);
};

TEST(Fori, CompiledIsTheLoopOutside) {
  const Array x = spread({7, 5});
  const Array expected = relax(x);
  for (const auto& placed : layouts_of(x)) expect_close(jit(relax)(placed), expected, "fori_loop");
}

TEST(Fori, ABodyThatTakesANumberIsOneLoopToo) {
  const auto f = [](const Array& x) {
    return fori_loop(
        2, 30, [](int i, const Array& v) { return v + 1.0 / (i * i) * cos(v); }, x);
  };
  const Array x = spread({7, 5});
  const auto compiled = jit(f).lower(x).compile();
  EXPECT_THAT(compiled.as_text(), HasSubstr("28 times"));
  expect_close(compiled(x), f(x), "numbers");
}

TEST(Fori, StepsThatRecordDifferentOpsAreUnrolled) {
  const auto f = [](const Array& x) {
    return fori_loop(
        0, 12, [&](int i, const Array& v) { return i % 3 == 0 ? v + x(i) : v * 1.1; }, x(0));
  };
  const Array x = spread({12, 5});
  const auto compiled = jit(f).lower(x).compile();
  EXPECT_THAT(compiled.as_text(), Not(HasSubstr("times")));
  expect_close(compiled(x), f(x), "unrolled");
}

TEST(Fori, TenThousandStepsAreOneBody) {
  const auto f = [](int steps) {
    return [steps](const Array& x) {
      return fori_loop(
          0, steps, [](const Array&, const Array& v) { return v * 0.999f + 0.001f * sum(v); }, x);
    };
  };
  const Array x = device_put(ones({1000}), line(), P("x"));
  const auto start = std::chrono::steady_clock::now();
  const auto compiled = jit(f(10000)).lower(x).compile();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 1.0);
  const auto short_one = jit(f(20)).lower(x).compile();
  EXPECT_EQ(compiled.memory_analysis().peak_bytes, short_one.memory_analysis().peak_bytes);
  EXPECT_EQ(compiled.cost_analysis().communication_bytes,
            500 * short_one.cost_analysis().communication_bytes);
  EXPECT_EQ(compiled.cost_analysis().flops, 500 * short_one.cost_analysis().flops);
  const auto text = compiled.as_text();
  EXPECT_THAT(text, HasSubstr("10000 times"));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 20);
}

TEST(Fori, BytesMovedAreBytesPredicted) {
  const auto f = jit([](const Array& x) {
    return fori_loop(
        0, 25, [](const Array&, const Array& v) { return v - 0.1 * mean(v); }, x);
  });
  const Array x = device_put(spread({1000}), line(), P("x"));
  const auto compiled = f.lower(x).compile();
  eval(compiled(x));
  const debug::CommStats stats;
  eval(compiled(x));
  SCOPED_TRACE(compiled.as_text() + to_string(compiled.explanation()));
  EXPECT_EQ(stats.bytes("all-reduce"), compiled.explanation().bytes("all-reduce"));
  if (device_count() == 1) return;
  EXPECT_EQ(compiled.explanation().calls("all-reduce"), 25);
  // One row of the table for all of them, named as the user wrote it.
  EXPECT_THAT(to_string(compiled.explanation()),
              HasSubstr(", in 25 steps of fori_loop at control_test.cpp:"));
  EXPECT_THAT(to_string(compiled.explanation()), HasSubstr("all-reduce ×25 "));
}

TEST(Fori, MemoryDoesNotGrowWithTheSteps) {
  const auto peak_of = [](int steps) {
    const auto f = jit([steps](const Array& x) {
      return fori_loop(
          0, steps, [](const Array& i, const Array& v) { return v * 0.5f + sin(v) * i; }, x);
    });
    const Array x = device_put(ones({1 << 16}), line(), P("x"));
    eval(f(x));
    release_pooled_memory();
    const auto before = memory_use().live_bytes;
    reset_peak_memory();
    eval(f(x));
    return memory_use().peak_bytes - before;
  };
  const auto block = (std::int64_t{1} << 18) / device_count() + 4096;
  EXPECT_LE(peak_of(1000), 4 * block);
  EXPECT_LE(peak_of(1000), peak_of(10) + 4096);
}

TEST(Fori, IsPlannedOnMeshesThatDoNotExist) {
  const Mesh mesh = abstract_mesh({64, 64}, {"x", "y"});
  const Array x = device_put(zeros({8192, 8192}), mesh, P("x", "y")),
              w = device_put(zeros({8192, 8192}), mesh, P("y", None));
  const auto power = [](int steps) {
    return [steps](const Array& a, const Array& b) {
      return fori_loop(
          0, steps, [&](const Array&, const Array& v) { return tanh(matmul(v, b)); }, a);
    };
  };
  const auto start = std::chrono::steady_clock::now();
  const auto long_one = explain(power(10000), x, w), short_one = explain(power(10), x, w);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 2.0);
  EXPECT_GT(short_one.bytes(), 0);
  EXPECT_EQ(long_one.cost.flops, 1000 * short_one.cost.flops);
  EXPECT_EQ(long_one.memory.peak_bytes, short_one.memory.peak_bytes);
  EXPECT_THAT(to_string(long_one), HasSubstr("in 10000 steps of"));
}

TEST(SomeDevices, TakePartAlone) {
  const int n = std::max(1, device_count() - 1);
  const auto all = devices();
  const Mesh mesh = make_mesh({n}, {"x"}, {all.begin(), all.begin() + n});
  const Array host = spread({9, 3}), x = device_put(host, mesh, P("x"));
  const auto f = [](const Array& a) {
    const Array b = fori_loop(
        0, 12, [](const Array& i, const Array& v) { return v * 0.9 + mean(v) * i + ones({3}, float64); }, a);
    const Array c = while_loop([](const Array& v) { return sum(abs(v)) > 1.0; },
                               [](const Array& v) { return v * 0.5; }, b);
    return cond(
        sum(c) > 0.0, [](const Array& v) { return v - mean(v); }, [](const Array& v) { return v * 2.0; }, c);
  };
  expect_close(device_put(jit(f)(x), line(), P()), f(host), "values");
  expect_close(device_put(jit(grad([&](const Array& a) {
                            return sum(fori_loop(
                                0, 12, [](const Array&, const Array& v) { return sin(v) + mean(v); }, a));
                          }))(x),
                          line(), P()),
               grad([&](const Array& a) {
                 return sum(fori_loop(
                     0, 12, [](const Array&, const Array& v) { return sin(v) + mean(v); }, a));
               })(host),
               "gradient");
}

// ---- scan ----
constexpr auto run_recurrence = [](const Array& w, const Array& h0, const Array& xs) {
  return scan(
      [&](const Array& h, const Array& x) {
        const Array next = tanh(matmul(w, h) + x);
        return std::pair{next, next * x};
      },
      h0, xs);
};

TEST(Scan, CompiledIsTheLoopOutside) {
  const Array w = spread({5, 5}, -0.5, 0.5, 1), h0 = spread({5}, -1, 1, 2), xs = spread({13, 5});
  const auto [h, ys] = run_recurrence(w, h0, xs);
  for (const auto& placed_w : layouts_of(w))
    for (const auto& placed_xs : layouts_of(xs)) {
      const auto [jitted_h, jitted_ys] = jit(run_recurrence)(placed_w, h0, placed_xs);
      expect_close(jitted_h, h, "carry");
      expect_close(jitted_ys, ys, "stack");
    }
}

// The types of the results are those of a step, though none is made.
TEST(Scan, OfNoStepsGivesEmptyStacks) {
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

TEST(Scan, ResultsLieWhereTheyAreSaidTo) {
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

TEST(Scan, AnUncommittedCarryFollowsTheBody) {
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

TEST(Scan, StacksSplitAlongTheStepsAreTurnedWhereThatMovesLess) {
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

TEST(Scan, ACommittedCarryGoesWhereTheLoopMovesLess) {
  const auto f = jit([](const Array& c0, const Array& xs) {
    return scan([](const Array& c, const Array& x) { return std::pair{c * 0.5 + x, sum(c)}; }, c0, xs).first;
  });
  const Array c0 = device_put(spread({40}), line(), P()),
              xs = device_put(spread({12, 40}), line(), P(None, "x"));
  EXPECT_EQ(f.lower(c0, xs).compile().explanation().calls("all-gather"), 0);
}

TEST(Scan, WhatIsComputedBeforeTheLoopLiesWhereTheBodyReadsIt) {
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

TEST(Scan, WhatDoesNotChangeIsComputedOnce) {
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

TEST(Scan, TreesOfSeveralDtypesAndNothingStacked) {
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

TEST(Scan, AnEntryMayBeCarriedAsItIs) {
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

// ---- cond ----
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

TEST(Cond, TheChosenBranchAloneRuns) {
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

TEST(Cond, CompiledIsTheBranchOutside) {
  for (const double sign : {1.0, -1.0})
    for (const auto& x : layouts_of(spread({7, 3}) * 0.01 + sign)) {
      const auto [a, b] = jit(choose)(x);
      const auto [ea, eb] = choose(x);
      expect_close(a, ea, "array");
      expect_close(b, eb, "scalar");
    }
}

TEST(Cond, ResultsMeetInTheCheaperPlace) {
  const auto f = jit([](const Array& p, const Array& x, const Array& y) {
    return cond(
        p, [&] { return x * 1.0; }, [&] { return y * 1.0; });
  });
  const Array x = device_put(ones({64}), line(), P("x")), y = device_put(ones({64}), line(), P());
  const auto compiled = f.lower(ones({}, bool_), x, y).compile();
  EXPECT_EQ(compiled.output_shardings()[0],
            NamedSharding(line(), P("x")));  // slicing what is everywhere moves nothing
  EXPECT_EQ(compiled.explanation().bytes(), 0);
}

TEST(Cond, GradientsFlowThroughTheChosenBranchAndItsCaptures) {
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

TEST(Cond, MappedOverThePredicateSelectsPerExample) {
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

TEST(Cond, MappedWithOnePredicateStaysABranch) {
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

// ---- while_loop ----
constexpr auto grow = [](const Array& x, const Array& y) {
  return while_loop([](const Array& v) { return sum(v * v) < 1000.0; },
                    [&](const Array& v) { return v * 1.5 + y; }, x);
};

TEST(While, CompiledIsTheLoopOutside) {
  const Array x = spread({10}), y = spread({10}, 0, 1, 5);
  for (const auto& placed : layouts_of(x)) expect_close(jit(grow)(placed, y), grow(x, y), "while_loop");
}

TEST(While, MappedRunsUntilAllExamplesAreDone) {
  const Array x = spread({9, 4}, 0.1, 3), y = spread({4}, 0, 0.1, 5);
  std::vector<Array> rows;
  for (int i = 0; i < 9; ++i) rows.push_back(grow(x(i), y));
  for (const auto& placed : layouts_of(x)) {
    const auto f = [&](const Array& v) { return grow(v, y); };
    expect_close(vmap(f)(placed), stack(rows, 0), "vmap");
    expect_close(jit([&](const Array& a) { return vmap(f)(a); })(placed), stack(rows, 0), "vmap in jit");
  }
}

TEST(While, TangentsGoWithTheValues) {
  const Array x = spread({6}, 0.5, 1), y = spread({6}, 0, 0.1, 5), t = spread({6}, -1, 1, 8);
  const auto pushed = jit([&](const Array& a, const Array& da) {
    return jvp([&](const Array& v) { return grow(v, y); }, std::tuple(a), std::tuple(da)).second;
  })(x, t);
  const double h = 1e-6;
  expect_close(pushed, (grow(x + h * t, y) - grow(x - h * t, y)) / (2 * h), "finite differences", 1e-6);
}

TEST(While, ValuesAndTangentsAreOneLoop) {
  const auto f = jit([](const Array& x, const Array& t) {
    return jvp([](const Array& v) { return grow(v, v); }, std::tuple(x), std::tuple(t));
  });
  const auto text = f.lower(spread({6}, 0.5, 1), spread({6})).compile().as_text();
  EXPECT_EQ(text.find("  while:"), text.rfind("  while:")) << text;
}

TEST(While, HasNoGradientAndSaysWhatHas) {
  try {
    jit(grad([](const Array& x) { return sum(grow(x, x)); }))(spread({6}, 0.5, 1));
    FAIL() << "no error";
  } catch (const ArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("scan or fori_loop"));
  }
}

// ---- gradients of loops ----
template <class F> void expect_gradient(const F& f, const Array& x, const char* what) {
  std::mt19937 random(5);
  const Array t = random_like(x, random);
  const double h = 1e-5;
  const Array quotient = (f(x + h * t) - f(x - h * t)) / (2 * h);
  for (const auto& placed : layouts_of(x)) {
    const Array g = jit(grad(f))(placed);
    expect_close(sum(g * t), quotient, what, 1e-7);
    if (placed.is_committed()) {
      EXPECT_EQ(g.sharding(), placed.sharding()) << what;
    }
    expect_close(jit([&](const Array& a, const Array& da) {
                   return jvp(f, std::tuple(a), std::tuple(da)).second;
                 })(placed, t),
                 quotient, what, 1e-7);
  }
}

TEST(LoopGradient, OfForiAgreesWithFiniteDifferences) {
  expect_gradient([](const Array& x) { return sum(relax(x)); }, spread({7, 3}), "fori_loop");
}

TEST(LoopGradient, OfScanAgreesWithFiniteDifferences) {
  const Array w = spread({5, 5}, -0.5, 0.5, 1), h0 = spread({5}, -1, 1, 2), xs = spread({13, 5});
  const auto loss = [](const Array& a, const Array& b, const Array& c) {
    const auto [h, ys] = run_recurrence(a, b, c);
    return sum(h * h) + sum(ys * cos(ys));
  };
  expect_gradient([&](const Array& v) { return loss(v, h0, xs); }, w, "capture");
  expect_gradient([&](const Array& v) { return loss(w, v, xs); }, h0, "carry");
  expect_gradient([&](const Array& v) { return loss(w, h0, v); }, xs, "stack");
}

TEST(LoopGradient, AllOperandsAtOnceAgreeWithTheUnrolledLoop) {
  const Array w = spread({5, 5}, -0.5, 0.5, 1), h0 = spread({5}, -1, 1, 2), xs = spread({13, 5});
  const auto loss = [](const Array& a, const Array& b, const Array& c) {
    return sum(run_recurrence(a, b, c).second);
  };
  const auto [w1, h1, x1] = grad<0, 1, 2>(loss)(w, h0, xs);
  const auto [w2, h2, x2] =
      jit(grad<0, 1, 2>(loss))(device_put(w, line(), P("x")), h0, device_put(xs, line(), P(None, "x")));
  expect_close(w2, w1, "w");
  expect_close(h2, h1, "h0");
  expect_close(x2, x1, "xs");
}

TEST(LoopGradient, RunsForwardOnceAndBackwardOnce) {
  const auto loss = [](const Array& x) { return sum(relax(x)); };
  const auto text = jit(value_and_grad(loss)).lower(spread({7, 3})).compile().as_text();
  std::size_t loops = 0;
  for (std::size_t at = text.find("20 times"); at != std::string::npos; at = text.find("20 times", at + 1))
    ++loops;
  EXPECT_EQ(loops, 4U) << text;  // two loops, each named in its line and above its body
  EXPECT_THAT(text, HasSubstr("last step first"));
}

TEST(LoopGradient, OfSharedWeightsIsCombinedOnceBehindTheLoop) {
  const Array w = spread({5, 5}, -0.5, 0.5, 1), xs = spread({20, 7, 5});
  const auto loss = [](const Array& a, const Array& x) {
    const auto step = [&](const Array& h, const Array& v) { return std::pair{tanh(matmul(h, a) + v), h}; };
    return sum(scan(step, zeros({7, 5}, float64), x).first);
  };
  const Array placed_w = device_put(w, line(), P()), placed_xs = device_put(xs, line(), P(None, "x"));
  const auto g = jit(grad(loss));
  expect_close(g(placed_w, placed_xs), grad(loss)(w, xs), "weights");
  const auto compiled = g.lower(placed_w, placed_xs).compile();
  const auto explanation = compiled.explanation();
  EXPECT_LE(explanation.calls(), 2) << compiled.as_text() << explanation;
  EXPECT_LE(explanation.bytes(), 2 * 25 * 8 + 16) << explanation;
  // A sum that does not begin with zeros, in a loop in a loop.
  const auto f = [](const Array& x, const Array& first) {
    const auto inner = [&](const Array& i) {
      return fori_loop(
          0, 9, [&](const Array& j, const Array& a) { return a + sum(x * (i + j), 0, true); },
          zeros({1}, float64));
    };
    return fori_loop(
        0, 10, [&](const Array& i, const Array& c) { return c + inner(i); }, first);
  };
  const Array x = spread({11}), first = spread({1});
  expect_close(jit(f)(device_put(x, line(), P("x")), first), f(x, first), "sum");
  EXPECT_LE(jit(f).lower(device_put(x, line(), P("x")), first).compile().explanation().calls(), 1);
}

TEST(LoopGradient, SecondDerivatives) {
  const auto f = [](const Array& x) {
    return sum(fori_loop(
        0, 10, [](const Array&, const Array& v) { return v + 0.1 * sin(v) * v; }, x));
  };
  const Array x = spread({5});
  const Array expected = grad([&](const Array& v) { return sum(grad(f)(v) * v); })(x);
  expect_close(jit(grad([&](const Array& v) { return sum(grad(f)(v) * v); }))(x), expected, "grad of grad");
  expect_close(jit([&](const Array& v) { return jvp(grad(f), std::tuple(v), std::tuple(v)).second; })(x),
               jvp(grad(f), std::tuple(x), std::tuple(x)).second, "jvp of grad");
}

TEST(LoopGradient, IntegersAndMasksAreCarriedAlong) {
  const auto f = [](const Array& x) {
    return sum(fori_loop(
                   0, 12,
                   [](const Array& i, const std::pair<Array, Array>& s) {
                     const Array v = where(s.first > 0.2, s.first * 0.9, s.first + 0.1 * (s.second + i));
                     return std::pair{v, s.second + 1};
                   },
                   std::pair{x, Array(zeros({}, int32))})
                   .first);
  };
  expect_gradient(f, spread({9}), "masks");
}

TEST(LoopGradient, Mapped) {
  const Array xs = spread({6, 13, 5}), w = spread({5, 5}, -0.5, 0.5, 1), h0 = spread({5}, -1, 1, 2);
  const auto loss = [&](const Array& a) { return sum(run_recurrence(w, h0, a).second); };
  std::vector<Array> rows;
  for (int i = 0; i < 6; ++i) rows.push_back(grad(loss)(xs(i)));
  for (const auto& placed : layouts_of(xs))
    expect_close(jit([&](const Array& a) { return vmap(grad(loss))(a); })(placed), stack(rows, 0),
                 "vmap of grad");
  const auto of_w = [&](const Array& a) {
    return grad([&](const Array& v) { return sum(run_recurrence(v, h0, a).second); })(w);
  };
  rows.clear();
  for (int i = 0; i < 6; ++i) rows.push_back(of_w(xs(i)));
  expect_close(jit([&](const Array& a) { return vmap(of_w)(a); })(xs), stack(rows, 0),
               "vmap of grad of a capture");
}

// ---- batches ----
TEST(LoopBatch, IsTheLoopOverTheExamples) {
  const Array w = spread({5, 5}, -0.5, 0.5, 1), h0 = spread({5}, -1, 1, 2), xs = spread({6, 13, 5}),
              ws = spread({6, 5, 5}, -0.5, 0.5, 4);
  std::vector<Array> hs, yss, of_ws;
  for (int i = 0; i < 6; ++i) {
    const auto [h, ys] = run_recurrence(w, h0, xs(i));
    hs.push_back(h), yss.push_back(ys);
    of_ws.push_back(run_recurrence(ws(i), h0, xs(0)).second);
  }
  for (const auto& placed : layouts_of(xs)) {
    const auto [h, ys] = vmap([&](const Array& a) { return run_recurrence(w, h0, a); })(placed);
    expect_close(h, stack(hs, 0), "carry");
    expect_close(ys, stack(yss, 0), "stack");
  }
  for (const auto& placed : layouts_of(ws))
    expect_close(jit([&](const Array& a) {
                   return vmap([&](const Array& b) { return run_recurrence(b, h0, xs(0)).second; })(a);
                 })(placed),
                 stack(of_ws, 0), "capture");
}

TEST(LoopBatch, CollectivesOverTheMappedAxis) {
  const auto f = [](const Array& x) {
    return fori_loop(
        0, 10, [](const Array&, const Array& v) { return v * 0.5 + 0.1 * psum(v, "i"); }, x);
  };
  Array expected = spread({6, 3});
  const Array x = expected;
  for (int i = 0; i < 10; ++i) expected = expected * 0.5 + 0.1 * sum(expected, 0, true);
  expect_close(vmap(f, {.axis_name = "i"})(x), expected, "psum in a loop");
}

// ---- one inside another ----
TEST(Nested, LoopsBranchesAndLoops) {
  const auto f = [](const Array& x) {
    const auto outer = [](const Array& c, const Array& row) {
      const auto [inner, ys] = scan(
          [&](const Array& a, const Array& v) {
            return std::pair{a * 0.9 + v * sum(row), a * v};
          },
          c, row);
      const Array chosen = cond(
          inner > 0.0, [](const Array& a) { return sin(a); }, [&](const Array& a) { return a * sum(ys); },
          inner);
      return std::pair{chosen, ys};
    };
    const auto [c, all] = scan(outer, zeros({}, float64), x);
    return c + sum(all * all);
  };
  const Array x = spread({10, 11});
  for (const auto& placed : layouts_of(x)) expect_close(jit(f)(placed), f(x), "scan in scan, cond in scan");
  expect_gradient(f, x, "gradient of nested loops");
  const auto g = [&](const Array& v) {
    return while_loop([](const Array& a) { return sum(abs(a)) < 50.0; },
                      [&](const Array& a) {
                        return a * 1.2 + scan(
                                             [](const Array& c, const Array& b) {
                                               return std::pair{c + b, c};
                                             },
                                             zeros({}, float64), v)
                                             .first;
                      },
                      v + 0.1);
  };
  const Array y = spread({12}, 0.1, 1);
  for (const auto& placed : layouts_of(y)) expect_close(jit(g)(placed), g(y), "scan in while");
}

TEST(Nested, JitInGradOfScan) {
  const auto step = jit([](const Array& c, const Array& x) { return c * cos(x) + x; });
  const auto loss = [&](const Array& xs) {
    return sum(scan(
                   [&](const Array& c, const Array& x) {
                     return std::pair{step(c, x), c};
                   },
                   zeros({4}, float64), xs)
                   .second);
  };
  const Array xs = spread({15, 4});
  expect_close(grad(loss)(xs), jit(grad(loss))(xs), "grad");
  expect_close(grad(jit(loss))(xs), grad(loss)(xs), "grad of jit");
}

TEST(Nested, CheckpointedSteps) {
  const Array w = spread({5, 5}, -0.5, 0.5, 1), xs = spread({13, 5});
  const auto loss = [&](const Array& a, bool again) {
    const auto step = [](const Array& w1, const Array& h, const Array& x) {
      return tanh(matmul(w1, sin(h)) + x);
    };
    return sum(scan(
                   [&](const Array& h, const Array& x) {
                     return std::pair{again ? checkpoint(step)(a, h, x) : step(a, h, x), x};
                   },
                   zeros({5}, float64), xs)
                   .first);
  };
  expect_close(jit(grad([&](const Array& a) { return loss(a, true); }))(w),
               grad([&](const Array& a) { return loss(a, false); })(w), "checkpoint");
}

// ---- mapped functions ----
std::vector<std::pair<int, int>> ring() {
  std::vector<std::pair<int, int>> pairs;
  for (int r = 0; r < device_count(); ++r) pairs.emplace_back(r, (r + 1) % device_count());
  return pairs;
}

TEST(Mapped, ScanInsideShardMap) {
  const Mesh mesh = line();
  const int n = device_count();
  const Array x = spread({3 * n, 4});
  const auto body = [](const Array& block) {
    return fori_loop(
        0, 15,
        [](const Array&, const Array& v) {
          return v * 0.5 + 0.1 * ppermute(v, "x", ring()) + 0.01 * psum(sum(v), "x");
        },
        block);
  };
  const auto f = shard_map(body, mesh, P("x"), P("x"));
  expect_close(jit(f)(x), f(x), "values");
  const auto loss = [&](const Array& v) { return sum(f(v) * f(v)); };
  expect_close(jit(grad(loss))(x), grad(loss)(x), "gradient");
}

TEST(Mapped, ScanInsideShardMapWithWeightsThatAllRanksShare) {
  const Mesh mesh = line();
  const int n = device_count();
  const Array x = spread({2 * n, 12, 3}), w = spread({3, 3}, -0.5, 0.5, 4);
  const auto body = [](const Array& weights, const Array& block) {
    const auto step = [&](const Array& h, const Array& v) {
      return std::pair{tanh(matmul(h, weights) + v), h};
    };
    return psum(sum(scan(step, zeros_like(block(slice(), 0)), moveaxis(block, 1, 0)).first), "x");
  };
  for (const bool checked : {true, false}) {
    const auto f = shard_map(body, mesh, {P(), P("x")}, P(), {.check_vma = checked});
    expect_close(jit(f)(w, x), f(w, x), "values");
    const auto [gw, gx] = jit(grad<0, 1>(f))(w, x);
    const auto [ew, ex] = grad<0, 1>(f)(w, x);
    expect_close(gw, ew, "weights");
    expect_close(gx, ex, "data");
    const auto pushed = [&](const Array& a, const Array& b) {
      return jvp(f, std::tuple(a, b), std::tuple(a, b)).second;
    };
    expect_close(jit(pushed)(w, x), pushed(w, x), "tangents");
  }
}

TEST(Mapped, ShardMapInsideScan) {
  const Mesh mesh = line();
  const Array x = spread({4 * device_count() - (device_count() > 1 ? 1 : 0), 3}), steps = spread({11});
  const auto mapped =
      shard_map([](const Array& block) { return sin(block) + psum(sum(block), "x"); }, mesh, P("x"), P("x"));
  const auto f = [&](const Array& v, const Array& s) {
    return scan([&](const Array& c, const Array& a) { return std::pair{mapped(c) * 0.1 + a, sum(c)}; }, v, s);
  };
  const auto [c, ys] = jit(f)(device_put(x, mesh, P("x")), steps);
  const auto [ec, eys] = f(device_put(x, mesh, P("x")), steps);
  expect_close(c, ec, "carry");
  expect_close(ys, eys, "stack");
}

TEST(Mapped, RanksMayTakeDifferentBranches) {
  const Mesh mesh = line();
  const Array x = spread({2 * device_count(), 3});
  const auto f = shard_map(
      [](const Array& block) {
        return cond(
            axis_index("x") % 2 == 0, [](const Array& b) { return b * psum(sum(b), "x"); },
            [](const Array& b) { return sin(b); }, block);
      },
      mesh, P("x"), P("x"));
  expect_close(jit(f)(x), f(x), "branches");
}

TEST(Mapped, RanksThatStopAtDifferentStepsMayNotTalk) {
  const Mesh mesh = line();
  const Array x = spread({2 * device_count()}, 0.1, 3);
  const auto quiet = shard_map(
      [](const Array& b) {
        return while_loop([](const Array& v) { return sum(v) < 100.0; },
                          [](const Array& v) { return v * 1.5; }, b);
      },
      mesh, P("x"), P("x"));
  std::vector<Array> blocks;
  for (int r = 0; r < device_count(); ++r)
    blocks.push_back(while_loop([](const Array& v) { return sum(v) < 100.0; },
                                [](const Array& v) { return v * 1.5; }, Array(x(slice(2 * r, 2 * r + 2)))));
  expect_close(jit(quiet)(x), concatenate(blocks, 0), "each its own number of steps");
  if (device_count() == 1) return;
  const auto talking = shard_map(
      [](const Array& b) {
        return while_loop([](const Array& v) { return sum(v) < 100.0; },
                          [](const Array& v) { return v * 1.5 + psum(v, "x"); }, b);
      },
      mesh, P("x"), P("x"));
  try {
    jit(talking)(x);
    FAIL() << "no error";
  } catch (const ShardingError& error) {
    EXPECT_THAT(error.what(), HasSubstr("pmax"));
  }
}

// ---- failures and observers ----
TEST(Failure, OfAnOpInABodyIsRaisedOnAllRanks) {
  const auto f = jit([](const Array& a) {
    return fori_loop(
        0, 10, [](const Array&, const Array& v) { return linalg::cholesky(v); }, a);
  });
  const Array good = device_put(eye(6, float64) * 4.0, line(), P("x"));
  expect_close(f(good), eye(6, float64) * std::pow(4.0, 1.0 / 1024), "values");
  EXPECT_THROW(eval(f(-good)), LinAlgError);
  expect_close(f(good), eye(6, float64) * std::pow(4.0, 1.0 / 1024), "values after a failure");
}

TEST(Failure, TheSearchForNanLooksIntoLoops) {
  const auto f = jit([](const Array& x) {
    return fori_loop(
        0, 10, [](const Array& i, const Array& v) { return sqrt(v - i * 0.5); }, x);
  });
  const Array x = device_put(ones({10}), line(), P("x"));
  debug::set_nan_check(true);
  EXPECT_THROW(eval(f(x)), NanError);
  debug::set_nan_check(false);
}

TEST(Profile, StepsInsideALoopAreCountedOnce) {
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

// ---- bad input ----
template <class E, class F> std::string error_of(const F& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

TEST(BadInput, ACarriedValueThatChanges) {
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
  EXPECT_THAT(text, HasSubstr("f64[3]"));
  EXPECT_THAT(text, HasSubstr("f32[3]"));
  EXPECT_THAT(text, HasSubstr("astype"));
  EXPECT_THAT(text, HasSubstr("control_test.cpp"));
  const auto g = [](const Array& x) {
    return scan(
               [](const Array& c, const Array& v) {
                 return std::pair{concatenate({c, v}, 0), c};
               },
               x(0), x)
        .first;
  };
  EXPECT_THAT(error_of<ShapeError>([&] { jit(g)(spread({10, 3})); }), HasSubstr("f64[6]"));
}

TEST(BadInput, NumbersThatChange) {
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

TEST(BadInput, BranchesThatDiffer) {
  const auto f = [](const Array& x) {
    return cond(
        sum(x) > 0.0, [](const Array& v) { return v; }, [](const Array& v) { return sum(v); }, x);
  };
  EXPECT_THAT(error_of<ArgumentError>([&] { jit(f)(spread({3})); }), HasSubstr("f64[3]"));
  EXPECT_THAT(error_of<ShapeError>([&] {
                jit([](const Array& x) {
                  return cond(
                      x > 0.0, [](const Array& v) { return v; }, [](const Array& v) { return -v; }, x);
                })(spread({3}));
              }),
              HasSubstr("scalar"));
}

TEST(BadInput, Conditions) {
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
