// shard_map: the function maps blocks to blocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/tessera.hpp>

#include <cmath>
#include <functional>
#include <utility>

#include "support/compare.hpp"
#include "support/errors.hpp"

namespace {

using namespace tessera;
using test::expect_equal;
using test::expect_error;

Array data(Shape shape, int seed = 1) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    values.push_back(static_cast<float>((i * 7 + seed * 5) % 13 - 4));
  return array(HostArray(values, shape));
}

Mesh line() { return make_mesh({device_count()}, {"x"}); }
// All ranks on two axes, as square as possible; the first axis is the longer one.
Mesh grid() {
  const int p = device_count();
  int a = 1;
  for (int f = 2; f * f <= p; ++f)
    if (p % f == 0) a = f;
  return make_mesh({p / a, a}, {"x", "y"});
}

TEST(ShardMap, the_function_sees_blocks_and_results_are_arrays) {
  const Mesh mesh = grid();
  const int nx = mesh.axis_size("x"), ny = mesh.axis_size("y");
  const Array x = data({4 * nx, 3 * ny});
  Shape seen;
  const auto f = shard_map(
      [&](const Array& b) {
        seen = b.shape();
        return b * 2;
      },
      mesh, P("x", "y"), P("x", "y"));
  const Array y = f(x);
  EXPECT_EQ(seen, (Shape{4, 3}));
  EXPECT_EQ(y.sharding(), NamedSharding(mesh, P("x", "y")));
  expect_equal(y, x * 2, "times two");
  expect_equal(f(device_put(x, mesh, P("y", "x"))), x * 2, "from another layout");
  expect_equal(jit(f)(x), x * 2, "under jit");
}

TEST(ShardMap, specs_may_name_several_axes_per_dimension_and_stand_for_subtrees) {
  const Mesh mesh = grid();
  const int p = mesh.size();
  const std::pair<Array, std::vector<Array>> tree{data({2 * p}), {data({p, 2}, 2), data({3 * p}, 3)}};
  const auto f = shard_map(
      [](const std::pair<Array, std::vector<Array>>& t, const Array& w, double s) {
        return std::tuple{t.first * s, t.second, w + 1};
      },
      mesh, {P(axes("x", "y")), P(), P()}, {P(axes("x", "y")), P(axes("x", "y")), P()});
  const auto [a, b, c] = f(tree, data({5}), 3.0);
  expect_equal(a, tree.first * 3, "first");
  expect_equal(b[0], tree.second[0], "second 0");
  expect_equal(b[1], tree.second[1], "second 1");
  expect_equal(c, data({5}) + 1, "whole");
  EXPECT_TRUE(c.is_fully_replicated());
}

TEST(ShardMap, lists_of_specs_axes_and_shardings_may_be_tuples) {
  const Mesh mesh = grid();
  const Array x = data({2 * mesh.size()}), y = data({5}, 2);
  const auto f = [](const Array& a, const Array& b) { return std::pair{a * 2, sum(b)}; };
  const auto [mapped, whole] =
      shard_map(f, mesh, std::tuple{P(axes("x", "y")), P()}, std::tuple{P(axes("x", "y")), P()})(x, y);
  expect_equal(mapped, x * 2, "split");
  expect_equal(whole, sum(y), "whole");
  const auto rows = vmap([](const Array& a, const Array& b) { return a + b; },
                         {.in_axes = std::tuple{0, None}, .out_axes = 1})(x, y);
  expect_equal(rows, x + expand_dims(y, 1), "rows");
  const Sharding split = NamedSharding(mesh, P("y"));
  const auto placed = jit(f, {.out_shardings = std::tuple{split, None}})(x, y).first;
  EXPECT_EQ(placed.sharding(), split) << placed.sharding();
}
TEST(ShardMap, results_that_are_the_same_on_all_ranks_need_no_axis) {
  const Mesh mesh = grid();
  const Array x = data({mesh.axis_size("x") * 2, mesh.axis_size("y") * 3});
  const auto total =
      shard_map([](const Array& b) { return psum(sum(b), axes("x", "y")); }, mesh, P("x", "y"), P());
  expect_equal(total(x), sum(x), "total");
  const auto columns =
      shard_map([](const Array& b) { return psum(sum(b, 0), "x"); }, mesh, P("x", "y"), P("y"));
  expect_equal(columns(x), sum(x, 0), "columns");
  const auto gathered = shard_map([](const Array& b) { return all_gather(b, "x", {.tiled = true}); }, mesh,
                                  P("x", "y"), P(None, "y"));
  expect_equal(gathered(x), x, "gathered");
}

TEST(ShardMap, checker_names_the_result_and_the_axes) {
  const Mesh mesh = grid();
  const Array x = data({mesh.axis_size("x") * 2, mesh.axis_size("y")});
  const auto keep = [](const Array& b) { return b; };
  expect_error<ShardingError>([&] { shard_map(keep, mesh, P("x", "y"), P())(x); },
                              {"result 0", "'x', 'y'", "P()", "psum", "check_vma"});
  expect_error<ShardingError>(
      [&] { shard_map([](const Array& b) { return psum(b, "x"); }, mesh, P("x", "y"), P())(x); }, {"'y'"});
  expect_error<ShardingError>(
      [&] {
        shard_map([](const Array& b) { return ppermute(psum(b, "x"), "x", {}); }, mesh, P("x"), P())(x);
      },
      {"'x'"});
  EXPECT_NO_THROW(shard_map(keep, mesh, P("x", "y"), P(), {.check_vma = false})(x));
  EXPECT_NO_THROW(
      shard_map([](const Array& b) { return pmax(sum(b), "x") + axis_size("x"); }, mesh, P("x"), P())(x));
}

TEST(ShardMap, constants_and_arrays_from_outside_are_seen_whole) {
  const Mesh mesh = line();
  const int p = mesh.size();
  const Array x = data({2 * p, 3}), w = device_put(data({3, 2 * p}, 2), mesh, P(None, "x")), c = arange(3.0f);
  const auto f = shard_map(
      [&](const Array& b) {
        return matmul(b + c, w) + ones({2, 1});
      },
      mesh, P("x"), P("x"));
  expect_equal(f(x), matmul(x + c, w) + 1, "closed over");
  const auto g = shard_map([&](const Array&) { return arange(2.0f); }, mesh, P("x"), P("x"));
  expect_equal(g(x), reshape(broadcast_to(arange(2.0f), {p, 2}), {-1}), "a constant as result");
}

TEST(ShardMap, other_axes_stay_with_the_planner) {
  const Mesh mesh = grid();
  const int nx = mesh.axis_size("x"), ny = mesh.axis_size("y");
  const Array x = data({2 * nx, 3 * ny, 2}), w = data({3 * ny, 4}, 2);
  const Array sharded = device_put(x, mesh, P("x", "y"));
  Shape seen;
  const auto f = shard_map(
      [&](const Array& b) {
        seen = b.shape();
        return tensordot(psum(b, "x"), w, {{1}, {0}});
      },
      mesh, P("x"), P(), {.axis_names = {"x"}});
  const Array wanted = tensordot(sum(reshape(x, {nx, 2, 3 * ny, 2}), 0), w, {{1}, {0}});
  expect_equal(f(sharded), wanted, "contraction over a planner's axis", 1e-6);
  EXPECT_EQ(seen, (Shape{2, 3 * ny, 2}));
  const auto keep =
      shard_map([](const Array& b) { return b + 1; }, mesh, P("x"), P("x"), {.axis_names = {"x"}});
  EXPECT_EQ(keep(sharded).sharding(), NamedSharding(mesh, P("x", "y")));
  expect_equal(jit(f)(sharded), wanted, "under jit", 1e-6);
  expect_equal(keep(device_put(x, mesh, P("y", "x"))), x + 1, "manual axis where the planner's was");
  expect_equal(keep(device_put(x, mesh, P(axes("y", "x")))), x + 1, "manual axis minor");
}

TEST(ShardMap, nests_over_different_axes) {
  const Mesh mesh = grid();
  const int nx = mesh.axis_size("x"), ny = mesh.axis_size("y");
  const Array x = data({2 * nx, 3 * ny});
  const auto inner = [&](const Array& b) {
    return shard_map(
        [](const Array& c) {
          EXPECT_EQ(c.shape(), (Shape{2, 3}));
          return psum(c, "x") * 100 + psum(c, "y") + axis_index("x") * 10 + axis_index("y");
        },
        mesh, P(None, "y"), P(None, "y"), {.axis_names = {"y"}})(b);
  };
  const auto outer = shard_map(inner, mesh, P("x"), P("x"), {.axis_names = {"x"}});
  const auto flat = shard_map(
      [](const Array& c) {
        return psum(c, "x") * 100 + psum(c, "y") + axis_index("x") * 10 + axis_index("y");
      },
      mesh, P("x", "y"), P("x", "y"));
  expect_equal(outer(x), flat(x), "nested");
  expect_error<ShardingError>(
      [&] {
        shard_map(
            [&](const Array& b) {
              return shard_map([](const Array& c) { return c; }, mesh, P("x"), P("x"),
                               {.axis_names = {"x"}})(b);
            },
            mesh, P("x"), P("x"))(x);
      },
      {"'x'", "already"});
  if (device_count() > 1)
    expect_error<ShardingError>(
        [&] {
          shard_map(
              [&](const Array& b) {
                return shard_map([](const Array& c) { return c; }, make_mesh({1}, {"z"}), P(), P())(b);
              },
              mesh, P("x"), P("x"))(x);
        },
        {"same mesh"});
}

TEST(ShardMap, on_some_of_the_devices) {
  const int p = device_count();
  for (int n = 1; n <= p; ++n) {
    std::vector<Device> chosen;
    for (int i = 0; i < n; ++i) chosen.push_back(devices()[p - 1 - i]);
    const Mesh mesh = make_mesh({n}, {"x"}, chosen);
    const Array x = data({2 * n, 3});
    const auto f = shard_map(
        [](const Array& b) {
          return b - psum(b, "x") + ppermute(b, "x", {{0, 0}});
        },
        mesh, P("x"), P("x"));
    const Array y = f(x);
    EXPECT_EQ(y.devices(), mesh.devices().size() == 0 ? std::set<Device>{}
                                                      : std::set<Device>(chosen.begin(), chosen.end()));
    EXPECT_EQ(local<float>(y).size(), mesh.contains(local_devices()[0]) ? 6u : 0u);
    const Array blocks = reshape(x, {n, 2, 3});
    const Array first = concatenate({blocks(slice(0, 1)), zeros({n - 1, 2, 3})});
    expect_equal(y, reshape(blocks - sum(blocks, 0, true) + first, {2 * n, 3}),
                 "on " + std::to_string(n) + " devices");
  }
}

TEST(ShardMap, uneven_blocks_where_the_body_agrees) {
  const int p = device_count();
  const Mesh mesh = line();
  for (std::int64_t n = 1; n <= 4 * p + 1; ++n) {
    const auto block = (n + p - 1) / p;
    const bool some_empty = (p - 1) * block >= n;
    const Array x = data({n, 2});
    const auto f = shard_map([](const Array& b) { return b * 2 + psum(sum(b), "x"); }, mesh, P("x"), P("x"));
    if (some_empty && n % p != 0) {
      expect_error<ShardingError>([&] { f(x); }, {"argument 0", std::to_string(n), "without a block",
                                                  std::to_string((n + p - 1) / p * p)});
      continue;
    }
    expect_equal(f(x), x * 2 + sum(x), "n = " + std::to_string(n));
    expect_equal(jit(f)(x), x * 2 + sum(x), "under jit, n = " + std::to_string(n));
    if (n % p == 0) continue;
    expect_error<ShardingError>(
        [&] { shard_map([](const Array& b) { return psum(b, "x"); }, mesh, P("x"), P())(x); },
        {"psum", "(" + std::to_string(block), "Pad"});
  }
}

// Ops that change nothing where there is one row change something on the other ranks.
TEST(ShardMap, uneven_blocks_of_which_one_has_a_single_row) {
  using Function = std::function<Array(const Array&, const Array&)>;
  const int p = device_count(), last = 2 * p - 2;  // blocks of 2, ..., 2 and 1 rows
  const Array x = data({last + 1, 3}), c = data({1, 3}, 4);
  const std::pair<Function, Function> cases[] = {
      {[](auto& b, auto&) { return sum(b * b * b, 0); }, [](auto& x, auto&) { return sum(x * x * x, 0); }},
      {[](auto& b, auto& c) { return sum(sin(b + c)); }, [](auto& x, auto& c) { return sum(sin(x + c)); }},
      {[](auto& b, auto& c) { return sum(b * c(0)); }, [](auto& x, auto& c) { return sum(x * c); }},
      {[](auto& b, auto& c) { return sum(b(slice(0, 1)) * c); },
       [&](auto& x, auto& c) { return sum(x(slice(0, last + 1, 2)) * c); }},
      {[](auto& b, auto&) { return sum(broadcast_to(sum(b, 1, true), b.shape()) * ones(b.shape())); },
       [](auto& x, auto&) { return 3 * sum(x); }},
      {[](auto& b, auto& c) { return sum(mean(b, 0) * c); },
       [&](auto& x, auto& c) { return sum(x(slice(0, last)) * c) / 2 + sum(x(slice(last, last + 1)) * c); }},
      {[](auto& b, auto&) { return sum(roll(b, 1, 0) * b); },
       [&](auto& x, auto&) {
         return 2 * sum(x(slice(0, last, 2)) * x(slice(1, last, 2))) + sum(square(x(slice(last, last + 1))));
       }},
      {[](auto& b, auto&) {
         return sum(pad(b, {{0, 2 - static_cast<int>(b.shape()[0])}, {0, 0}}), 0);
       },
       [](auto& x, auto&) { return sum(x, 0); }}};
  int number = 0;
  for (std::size_t i = 0; i < 2 * std::size(cases); ++i) {
    const auto& [block, whole] = cases[i / 2];
    const ReproducibleScope scope(i % 2 == 1);  // records one op per dim of a sum
    const auto mapped = shard_map([block](const Array& b, const Array& c) { return psum(block(b, c), "x"); },
                                  line(), {P("x"), P()}, P());
    const auto name = "case " + std::to_string(number++);
    expect_equal(mapped(x, c), whole(x, c), name, 1e-5);
    const auto gradients = grad<0, 1>([&](const Array& x, const Array& c) { return sum(mapped(x, c)); });
    const auto [gx, gc] = grad<0, 1>([&](const Array& x, const Array& c) { return sum(whole(x, c)); })(x, c);
    for (const auto& [hx, hc] : {gradients(x, c), jit(gradients)(x, c)}) {
      expect_equal(hx, gx, name + " by x", 1e-5);
      expect_equal(hc, gc, name + " by c", 1e-5);
    }
  }
}

TEST(ShardMap, uneven_blocks_whose_results_are_no_blocks_are_refused) {
  const int p = device_count();
  if (p < 2) return;
  const Array x = data({2 * p + p - 1});  // the last block is shorter
  const auto squared = shard_map([](const Array& b) { return ones({b.size() * b.size() * b.size()}); },
                                 line(), P("x"), P("x"));
  const auto plus_one = shard_map(
      [](const Array& b) {
        return concatenate({b, ones({1})});
      },
      line(), P("x"), P("x"));
  const auto head = shard_map([](const Array& b) { return b(slice(0, 2)); }, line(), P("x"), P("x"));
  EXPECT_EQ(head(x).shape(), Shape{2 * p});
  EXPECT_EQ(plus_one(x).shape(), Shape{4 * p - 1});
  if (p > 2) expect_error<ShardingError>([&] { squared(x); }, {"result 0", "sizes", "multiples"});
}

TEST(ShardMap, refuses_specs_that_do_not_fit) {
  const Mesh mesh = grid();
  const auto keep = [](const Array& b) { return b; };
  const Array x = data({mesh.size() * 2});
  expect_error<ShardingError>([&] { shard_map(keep, mesh, P("q"), P())(x); }, {"in_specs", "'q'", "Mesh("});
  expect_error<ShardingError>([&] { shard_map(keep, mesh, P(None, "x"), P())(x); },
                              {"argument 0", "1 dimension"});
  expect_error<ShardingError>([&] { shard_map(keep, mesh, P("x"), P("x", "y"))(x); },
                              {"result 0", "fewer than the entries"});
  expect_error<ShardingError>([&] { shard_map(keep, mesh, P("x", "x"), P())(data({2, 2})); }, {"twice"});
  expect_error<ShardingError>([&] { shard_map(keep, mesh, P("y"), P("y"), {.axis_names = {"x"}})(x); },
                              {"'y'", "axis_names"});
  expect_error<ShardingError>([&] { shard_map(keep, mesh, P("x"), P("x"), {.axis_names = {"q"}})(x); },
                              {"axis_names", "'q'"});
  expect_error<ArgumentError>(
      [&] {
        shard_map(keep, mesh, {P("x"), P()}, P("x"))(x);
      },
      {"in_specs", "1 part", "2"});
  expect_error<AxisNameError>(
      [&] { shard_map([](const Array& b) { return psum(b, "q"); }, mesh, P("x"), P("x"))(x); },
      {"'q'", "'x' (size", "shard_map_test.cpp"});
  expect_error<ArgumentError>(
      [&] { shard_map([](const Array& b) { return b + item<float>(sum(b)); }, mesh, P("x"), P("x"))(x); },
      {"mapped function"});
  if (device_count() > 1)
    expect_error<ShardingError>(
        [&] {
          shard_map([&](const Array& b) { return device_put(b, mesh, P("x")); }, mesh, P("x"), P("x"))(x);
        },
        {"device_put", "one rank's block"});
  if (device_count() > 1)
    expect_error<ShardingError>([&] { shard_map(keep, mesh, P("x"), P("x"))(device_put(x, devices()[0])); },
                                {"committed", "device_put"});
  Array leaked;
  shard_map(
      [&](const Array& b) {
        leaked = b;
        return b;
      },
      mesh, P("x"), P("x"))(x);
  expect_error<ShardingError>(
      [&] { shard_map([&](const Array& b) { return b + leaked; }, mesh, P("x"), P("x"))(x); },
      {"mapped function"});
}

// ---- gradients ----
TEST(ShardMapGrad, loss_over_blocks_has_the_gradient_of_the_whole) {
  const Mesh mesh = grid();
  const Array x = data({2 * mesh.axis_size("x"), 3}), w = data({3, 2 * mesh.axis_size("y")}, 2);
  const auto whole = [](const Array& x, const Array& w) { return sum(square(matmul(x, w))); };
  const auto [gx, gw] = grad<0, 1>(whole)(x, w);
  for (const bool check : {true, false}) {
    const auto mapped = shard_map(
        [](const Array& x, const Array& w) { return psum(sum(square(matmul(x, w))), axes("x", "y")); }, mesh,
        {P("x"), P(None, "y")}, P(), {.check_vma = check});
    const auto [hx, hw] = grad<0, 1>([&](const Array& x, const Array& w) { return mapped(x, w); })(x, w);
    expect_equal(hx, gx, "x", 1e-5);
    expect_equal(hw, gw, "w", 1e-5);
    const auto [jx, jw] = jit([&](const Array& x, const Array& w) {
      return grad<0, 1>([&](const Array& x, const Array& w) { return mapped(x, w); })(x, w);
    })(x, w);
    expect_equal(jx, gx, "x under jit", 1e-5);
    expect_equal(jw, gw, "w under jit", 1e-5);
  }
}

TEST(ShardMapGrad, of_every_collective_is_that_of_the_same_arithmetic_on_the_whole) {
  const Mesh mesh = line();
  const int p = mesh.size();
  const Array x = data({p, p, 2}), weights = data({p, p, 2}, 3);
  struct Case {
    const char* name;
    std::function<Array(const Array&)> mapped;  // on this rank's [1, p, 2]
    std::function<Array(const Array&)> whole;   // on [p, p, 2]
  };
  const auto rows = [p](const Array& y) { return broadcast_to(y, {p, p, 2}); };
  std::vector<std::pair<int, int>> up;
  for (int i = 0; i + 1 < p; ++i) up.emplace_back(i, i + 1);
  const std::vector<Case> cases = {
      {"psum", [](const Array& b) { return psum(square(b), "x"); },
       [&](const Array& x) { return rows(sum(square(x), 0, true)); }},
      {"pmean", [](const Array& b) { return pmean(square(b), "x") * b; },
       [&](const Array& x) { return mean(square(x), 0, true) * x; }},
      {"all_gather",
       [&](const Array& b) { return sum(square(all_gather(b, "x", {.tiled = true})), 0, true); },
       [&](const Array& x) { return rows(sum(square(x), 0, true)); }},
      {"all_gather used by rank",
       [&](const Array& b) {
         return sum(all_gather(b, "x", {.tiled = true}) * (axis_index("x") + 1), 0, true) * b;
       },
       [&](const Array& x) {
         return sum(x, 0, true) * reshape(arange(p) + 1, {p, 1, 1}) * x;
       }},
      {"psum_scatter",
       [&](const Array& b) {
         return broadcast_to(expand_dims(psum_scatter(square(b), "x", {.scatter_dimension = 1}), 1),
                             {1, p, 2});
       },
       [&](const Array& x) {
         return broadcast_to(expand_dims(sum(square(x), 0), 1), {p, p, 2});
       }},
      {"all_to_all", [](const Array& b) { return all_to_all(square(b), "x", 1, 1, {.tiled = true}); },
       [](const Array& x) { return swapaxes(square(x), 0, 1); }},
      {"ppermute", [&](const Array& b) { return ppermute(square(b), "x", up); },
       [p](const Array& x) {
         return concatenate({zeros({1, p, 2}), square(x)(slice(0, p - 1))});
       }},
      {"pbroadcast", [&](const Array& b) { return pbroadcast(square(b), "x", p - 1); },
       [&](const Array& x) { return rows(square(x)(slice(p - 1, p))); }},
  };
  for (const auto& c : cases) {
    const Array wanted = grad([&](const Array& x) { return sum(c.whole(x) * weights); })(x);
    for (const bool check : {true, false}) {
      const auto mapped = shard_map(c.mapped, mesh, P("x"), P("x"), {.check_vma = check});
      expect_equal(mapped(x), c.whole(x), std::string("value of ") + c.name, 1e-5);
      expect_equal(grad([&](const Array& x) { return sum(mapped(x) * weights); })(x), wanted,
                   std::string("gradient of ") + c.name + (check ? ", checked" : ", unchecked"), 1e-5);
    }
  }
}

// JAX's two conventions for gradients taken inside: with the checker a value that is equal on all ranks has
// one gradient; without it each rank differentiates its own copy, and the cotangents of psum's copies are
// summed.
TEST(ShardMapGrad, inside_the_function_follows_the_checker) {
  const Mesh mesh = line();
  const int p = mesh.size();
  const Array x = arange(static_cast<float>(p)), w = full({}, 2.0f);
  const auto of_w = [](const Array& b, const Array& w) {
    return grad([&](const Array& w) { return sum(b * w); })(w) + b * 0;
  };
  const auto of_psum = [](const Array& b) {
    return grad([](const Array& b) { return sum(psum(b * b, "x")); })(b);
  };
  const auto run = [&](auto f, bool check) {
    return shard_map(f, mesh, {P("x"), P()}, P("x"), {.check_vma = check})(x, w);
  };
  expect_equal(run(of_w, true), full({p}, static_cast<float>(p * (p - 1) / 2)), "one gradient for all");
  expect_equal(run(of_w, false), x, "each rank its own");
  const auto run1 = [&](bool check) {
    return shard_map(of_psum, mesh, P("x"), P("x"), {.check_vma = check})(x);
  };
  expect_equal(run1(true), x * 2, "psum transposes to the identity");
  expect_equal(run1(false), x * 2 * p, "psum transposes to psum");
}

TEST(ShardMapGrad, of_uneven_blocks) {
  const int p = device_count();
  const Array x = data({3 * p - 1}), w = data({}, 4);
  if (p > 2) {
    const auto mapped =
        shard_map([](const Array& b, const Array& w) { return psum(sum(square(b) * w), "x"); }, line(),
                  {P("x"), P()}, P());
    const auto [gx, gw] = grad<0, 1>([&](const Array& x, const Array& w) { return mapped(x, w); })(x, w);
    expect_equal(gx, x * 2 * w, "x", 1e-6);
    expect_equal(gw, sum(square(x)), "w", 1e-6);
  }
}

// ---- vmap ----
TEST(ShardMapVmap, maps_over_examples_of_blocks) {
  const Mesh mesh = line();
  const int p = mesh.size();
  const Array x = data({3, 2 * p, 2});
  const auto f = shard_map(
      [](const Array& b) {
        return b / 2 + psum(b, "x") + ppermute(b, "x", {{0, 0}}) + axis_index("x");
      },
      mesh, P("x"), P("x"));
  for (int axis = 0; axis < 3; ++axis) {
    const Array moved = moveaxis(x, 0, axis);
    std::vector<Array> wanted;
    for (int i = 0; i < 3; ++i) wanted.push_back(f(x(i)));
    expect_equal(vmap(f, {.in_axes = axis})(moved), stack(wanted), "batch at " + std::to_string(axis));
  }
  const auto inside = shard_map(
      [](const Array& b) {
        return vmap(
            [](const Array& row) {
              return psum(row, axes("x", "i")) +
                     all_gather(row, axes("i", "x"), {.axis = 0})(0) * axis_index(axes("x", "i"));
            },
            {.axis_name = "i"})(b);
      },
      mesh, P("x"), P("x"));
  const Array y = data({2 * p, 3});
  expect_equal(inside(y),
               broadcast_to(sum(y, 0, true), {2 * p, 3}) + y(0) * reshape(arange(2 * p), {2 * p, 1}),
               "a vmap inside");
}

TEST(ShardMapVmap, every_collective_over_a_mix_of_names) {
  const Mesh mesh = line();
  const int p = mesh.size(), n = 2 * p;
  const Array x =
      data({n, n, 3});  // example i of rank r at row r * 2 + i: the axis ("x", "i") counts the rows
  const auto mapped = [&](auto f) {
    return shard_map([&](const Array& b) { return vmap(f, {.axis_name = "i"})(b); }, mesh, P("x"), P("x"))(x);
  };
  const auto both = axes("x", "i");
  std::vector<std::pair<int, int>> ring, up;
  for (int i = 0; i < n; ++i) ring.emplace_back(i, (i + 1) % n);
  for (int i = 0; i + 3 < n; ++i) up.emplace_back(i, i + 3);
  expect_equal(mapped([&](const Array& e) { return ppermute(e, both, ring); }), roll(x, 1, 0), "ring");
  expect_equal(mapped([&](const Array& e) { return ppermute(e, both, up); }),
               n > 3 ? concatenate({zeros({3, n, 3}), x(slice(0, n - 3))}) : x * 0, "shift");
  expect_equal(mapped([&](const Array& e) { return pbroadcast(e, both, n - 1); }),
               broadcast_to(x(slice(n - 1, n)), {n, n, 3}), "pbroadcast");
  expect_equal(mapped([&](const Array& e) { return all_to_all(e, both, 0, 0); }), swapaxes(x, 0, 1),
               "all_to_all");
  expect_equal(mapped([&](const Array& e) { return all_to_all(e, both, 0, 1); }), transpose(x, {1, 2, 0}),
               "all_to_all to the end");
  expect_equal(mapped([&](const Array& e) { return psum_scatter(e, both); }), sum(x, 0), "psum_scatter");
  expect_equal(mapped([&](const Array& e) { return all_gather(e, both); }),
               broadcast_to(expand_dims(x, 0), {n, n, n, 3}), "all_gather");
  expect_equal(mapped([&](const Array& e) { return pargmax(e, both); }),
               broadcast_to(expand_dims(argmax(x, 0), 0), {n, n, 3}), "pargmax");
}

TEST(ShardMap, ranks_that_reach_different_collectives_get_an_error) {
  if (device_count() < 2) return;
  const Mesh mesh = line();
  const Array x = data({2 * mesh.size()});
  const auto f =
      shard_map([](const Array& b) { return process_index() == 0 ? psum(b, "x") + b : pmax(b, "x") + b; },
                mesh, P("x"), P("x"));
  expect_error<CommError>([&] { to_host(f(x)); }, {"psum", "pmax", "shard_map_test.cpp"});
}

}  // namespace
