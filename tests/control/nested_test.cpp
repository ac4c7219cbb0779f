// Loops under vmap, inside each other, and with jit, grad and checkpoint around them.
#include <tessera/collectives.hpp>

#include "control/loops.hpp"

namespace tessera::test {
namespace {

TEST(LoopBatch, is_the_loop_over_the_examples) {
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

TEST(LoopBatch, collectives_over_the_mapped_axis) {
  const auto f = [](const Array& x) {
    return fori_loop(
        0, 10, [](const Array&, const Array& v) { return v * 0.5 + 0.1 * psum(v, "i"); }, x);
  };
  Array expected = spread({6, 3});
  const Array x = expected;
  for (int i = 0; i < 10; ++i) expected = expected * 0.5 + 0.1 * sum(expected, 0, true);
  expect_close(vmap(f, {.axis_name = "i"})(x), expected, "psum in a loop");
}

TEST(Nested, loops_branches_and_loops) {
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

TEST(Nested, jit_in_grad_of_scan) {
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

TEST(Nested, checkpointed_steps) {
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

}  // namespace
}  // namespace tessera::test
