// Other transformations and libraries inside mapped functions.
#include <gtest/gtest.h>

#include <tessera/tessera.hpp>

#include <cmath>

#include "support/compare.hpp"

namespace {

using namespace tessera;
using test::expect_close;

Mesh line() { return make_mesh({device_count()}, {"x"}); }
Array data(Shape shape) { return random::uniform(random::key(7), shape); }

TEST(Inside, loops_with_collectives) {
  const int p = device_count();
  const Array x = data({2 * p, 3});
  const auto step = [](const Array& b) { return b * 0.5f + pmean(b, "x"); };
  const auto loop = [&](const Array& b) {
    return fori_loop(
        0, 4, [&](const auto&, const Array& b) { return step(b); }, b);
  };
  const auto unrolled = [&](const Array& b) { return step(step(step(step(b)))); };
  const auto mapped = [&](auto f) { return shard_map(f, line(), P("x"), P("x"))(x); };
  expect_close(mapped(loop), mapped(unrolled), "fori_loop");
  expect_close(jit([&](const Array& x) { return shard_map(loop, line(), P("x"), P("x"))(x); })(x),
               mapped(unrolled), "fori_loop under jit");
  const auto scanned = [&](const Array& b) {
    return scan(
               [](const Array& carry, const Array& row) {
                 return std::pair{carry + psum(row, "x"), carry};
               },
               zeros({3}), b)
        .second;
  };
  const auto by_hand = [&](const Array& b) { return stack({zeros({3}) * b(0), psum(b(0), "x")}); };
  expect_close(mapped(scanned), mapped(by_hand), "scan");
}

TEST(Inside, ring_product) {
  // C = A B with B's rows passed around a ring: every rank multiplies by the block that it holds, then sends
  // the block on.
  const int p = device_count();
  const Array a = data({2 * p, 3 * p}), b = data({3 * p, 4});
  std::vector<std::pair<int, int>> ring;
  for (int i = 0; i < p; ++i) ring.emplace_back(i, (i + p - 1) % p);
  const auto f = shard_map(
      [&](const Array& a, Array b) {
        Array c = zeros({2, 4});
        for (int s = 0; s < p; ++s) {
          const Array block = (axis_index("x") + s) % p;
          c = c + matmul(take(reshape(a, {2, p, 3}), block, 1), b);
          b = ppermute(b, "x", ring);
        }
        return c;
      },
      line(), P("x"), P("x"));
  expect_close(f(a, b), matmul(a, b), "ring");
  const Array w = data({2 * p, 4});
  const auto [ga, gb] = grad<0, 1>([&](const Array& a, const Array& b) { return sum(f(a, b) * w); })(a, b);
  const auto [wa, wb] =
      grad<0, 1>([&](const Array& a, const Array& b) { return sum(matmul(a, b) * w); })(a, b);
  expect_close(ga, wa, "gradient of a");
  expect_close(gb, wb, "gradient of b");
}

TEST(Inside, random_streams_per_rank) {
  const int p = device_count();
  const auto f =
      pmap([](const Array&) { return random::normal(random::fold_in(random::key(3), axis_index("i")), {4}); },
           {.axis_name = "i"});
  const Array draws = f(arange(p));
  for (int i = 0; i < p; ++i)
    expect_close(draws(i), random::normal(random::fold_in(random::key(3), i), {4}),
                 "rank " + std::to_string(i), 0);
}

TEST(Inside, print_shows_the_blocks_of_all_ranks) {
  const int p = device_count();
  std::string text, traced;
  const auto f =
      shard_map([&](const Array& b) { return text = to_string(b * 2), b; }, line(), P("x"), P("x"));
  f(arange(2 * p));
  EXPECT_EQ(text, "blocks of the ranks along x:\n" + to_string(reshape(arange(2 * p) * 2, {p, 2})));
  jit(f)(arange(2 * p));
  EXPECT_EQ(text.substr(0, 7), "Traced<");
}

TEST(Inside, transforms_of_blocks) {
  const int p = device_count();
  const Array x = data({2 * p, 8});
  const auto f = shard_map([](const Array& b) { return abs(fft::fft(b)) + sort(b) + cumsum(b, 1); }, line(),
                           P("x"), P("x"));
  expect_close(f(x), abs(fft::fft(x)) + sort(x) + cumsum(x, 1), "fft, sort, cumsum");
  const auto g = shard_map([](const Array& b) { return linalg::solve(matmul(b, transpose(b)) + eye(2), b); },
                           line(), P("x"), P("x"));
  std::vector<Array> wanted;
  for (int i = 0; i < p; ++i) {
    const Array b = x(slice(2 * i, 2 * i + 2));
    wanted.push_back(linalg::solve(matmul(b, transpose(b)) + eye(2), b));
  }
  expect_close(g(x), concatenate(wanted), "solve", 1e-4);
}

TEST(Inside, checkpoint_custom_vjp_and_second_derivatives) {
  const int p = device_count();
  const Array x = data({2 * p, 3});
  const auto layer = [](const Array& b) { return tanh(b) * pmean(b, "x"); };
  const auto loss = [&](auto f) {
    return [=](const Array& x) {
      return shard_map([=](const Array& b) { return psum(sum(f(b)), "x"); }, line(), P("x"), P())(x);
    };
  };
  const Array wanted = grad(loss(layer))(x);
  expect_close(grad(loss(checkpoint(layer)))(x), wanted, "checkpoint");
  const auto whole = [&](const Array& x) {
    const Array blocks = reshape(x, {p, 2, 3});
    return sum(tanh(blocks) * mean(blocks, 0, true));
  };
  expect_close(wanted, grad(whole)(x), "of the whole");
  const auto curvature = [](auto f) {
    return [=](const Array& x) { return grad([=](const Array& x) { return sum(square(grad(f)(x))); })(x); };
  };
  expect_close(curvature(loss(layer))(x), curvature(whole)(x), "second derivative", 1e-4);
  // Axis names bound in the forward pass are bound in the backward pass too, also inside a vmap.
  const auto scaled =
      custom_vjp([](const Array& b) { return pmean(b, "x"); },
                 [](const Array& b) {
                   return std::pair{pmean(b, "x"), b};
                 },
                 [](const Array&, const Array& ct) { return pmean(ct, "x") * axis_size("x"); });
  expect_close(grad(loss(scaled))(x),
               grad(loss([](const Array& b) { return pmean(b, "x"); }))(x) * static_cast<float>(p),
               "custom_vjp");
  const auto by_examples = [&](auto f) {
    return [=](const Array& x) { return sum(square(vmap(f, {.axis_name = "x"})(x))); };
  };
  const auto normal = [](const Array& row) { return tanh(row) * pmean(row, "x") + row * axis_index("x"); };
  expect_close(grad(by_examples(checkpoint(normal)))(x), grad(by_examples(normal))(x),
               "checkpoint in a vmap");
}

}  // namespace
