// Gradients of loops, compared with finite differences and unrolled loops, and their programs.
#include "control/loops.hpp"

namespace tessera::test {
namespace {

TEST(LoopGradient, of_fori_agrees_with_finite_differences) {
  expect_gradient([](const Array& x) { return sum(relax(x)); }, spread({7, 3}), "fori_loop");
}

TEST(LoopGradient, of_scan_agrees_with_finite_differences) {
  const Array w = spread({5, 5}, -0.5, 0.5, 1), h0 = spread({5}, -1, 1, 2), xs = spread({13, 5});
  const auto loss = [](const Array& a, const Array& b, const Array& c) {
    const auto [h, ys] = run_recurrence(a, b, c);
    return sum(h * h) + sum(ys * cos(ys));
  };
  expect_gradient([&](const Array& v) { return loss(v, h0, xs); }, w, "capture");
  expect_gradient([&](const Array& v) { return loss(w, v, xs); }, h0, "carry");
  expect_gradient([&](const Array& v) { return loss(w, h0, v); }, xs, "stack");
}

TEST(LoopGradient, all_operands_at_once_agree_with_the_unrolled_loop) {
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

TEST(LoopGradient, runs_forward_once_and_backward_once) {
  const auto loss = [](const Array& x) { return sum(relax(x)); };
  const auto text = jit(value_and_grad(loss)).lower(spread({7, 3})).compile().as_text();
  std::size_t loops = 0;
  for (std::size_t at = text.find("20 times"); at != std::string::npos; at = text.find("20 times", at + 1))
    ++loops;
  EXPECT_EQ(loops, 4U) << text;  // two loops, each named in its line and above its body
  EXPECT_THAT(text, HasSubstr("last step first"));
}

TEST(LoopGradient, of_shared_weights_is_combined_once_behind_the_loop) {
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
  // A nested loop whose sum does not start from zeros.
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

TEST(LoopGradient, second_derivatives) {
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

TEST(LoopGradient, integers_and_masks_are_carried_along) {
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

TEST(LoopGradient, mapped) {
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

}  // namespace
}  // namespace tessera::test
