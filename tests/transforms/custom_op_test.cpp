// Custom ops on any layout: the values are those of plain loops, and the laws hold that the library's own ops
// obey.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/custom_op.hpp>
#include <tessera/debug.hpp>
#include <tessera/maps.hpp>
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>
#include <tessera/transforms.hpp>

#include <cmath>
#include <functional>

#include "support/compare.hpp"
#include "support/text.hpp"

namespace {

using namespace tessera;
using test::printed;

Array data(Shape shape, Dtype dtype = float64, int seed = 1) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    values.push_back(std::sin(static_cast<double>(i * 7 + seed * 13)));
  return astype(array(HostArray(values, shape)), dtype);
}

// x as it is, and split in every way that the ranks allow: uneven and empty blocks, two axes, replicas.
std::vector<Array> layouts_of(const Array& x) {
  const int p = device_count();
  std::vector<Array> all{x};
  const Mesh line = make_mesh({p}, {"x"});
  std::vector<std::pair<Mesh, std::vector<DimSpec>>> specs;
  for (int d = 0; d < x.ndim(); ++d) {
    specs.push_back({line, std::vector<DimSpec>(x.ndim(), DimSpec(None))});
    specs.back().second[d] = "x";
  }
  if (p % 2 == 0 && x.ndim() == 2) {
    const Mesh grid = make_mesh({p / 2, 2}, {"x", "y"});
    specs.push_back({grid, {"x", "y"}});
    specs.push_back({grid, {"y", "x"}});
    specs.push_back({grid, {None, axes("y", "x")}});
    specs.push_back({grid, {"y", None}});
  }
  for (auto& [mesh, spec] : specs) all.push_back(device_put(x, mesh, PartitionSpec(std::move(spec))));
  return all;
}

void expect_values(const Array& got, const Array& wanted, const std::string& what, double tolerance = 1e-12) {
  test::expect_alike(got, wanted, tolerance, what);
}
std::string layout_text(const Array& x) { return printed(x.shape()) + " " + printed(x.sharding()); }
// The op gives wanted(x) on all layouts of x, eagerly and compiled.
void expect_on_layouts(const std::function<Array(const Array&)>& op, const Array& x, const Array& wanted) {
  for (const Array& a : layouts_of(x)) {
    expect_values(op(a), wanted, layout_text(a));
    expect_values(jit([&](Array v) { return op(v); })(a), wanted, "jit, " + layout_text(a));
  }
}

CustomOp row_squares() {
  return custom_op({.name = "row_squares",
                    .rule = "i j -> i | sum j",
                    .kernel =
                        [](BlockView<const double> x, BlockView<double> y) {
                          for (int i = 0; i < x.extent(0); ++i) {
                            y(i) = 0;
                            for (int j = 0; j < x.extent(1); ++j) y(i) += x(i, j) * x(i, j);
                          }
                        },
                    .vjp = [](auto in, auto, auto g) -> std::vector<Array> {
                      return {2.0 * in[0] * expand_dims(g[0], 1)};
                    }});
}

CustomOp product() {
  return custom_op({.name = "product",
                    .rule = "i j, j k -> i k | sum j",
                    .kernel =
                        [](BlockView<const double> a, BlockView<const double> b, BlockView<double> c) {
                          for (int i = 0; i < c.extent(0); ++i)
                            for (int k = 0; k < c.extent(1); ++k) {
                              c(i, k) = 0;
                              for (int j = 0; j < a.extent(1); ++j) c(i, k) += a(i, j) * b(j, k);
                            }
                        },
                    .vjp = [](auto in, auto, auto g) -> std::vector<Array> {
                      return {matmul(g[0], in[1].T()), matmul(in[0].T(), g[0])};
                    }});
}

std::vector<Shape> shapes() { return {{7, 5}, {13, 9}, {1, 3}, {3, 1}, {0, 4}, {4, 0}, {8, 16}}; }

TEST(CustomOp, sums_terms_of_split_dims) {
  const auto op = row_squares();
  for (const auto& shape : shapes()) {
    const Array x = data(shape);
    expect_on_layouts([&](const Array& a) { return op(a); }, x, sum(x * x, 1));
  }
}

TEST(CustomOp, combines_terms_by_other_reductions) {
  const auto largest = custom_op({.name = "largest",
                                  .rule = "i j -> j | max i",
                                  .kernel = [](BlockView<const float> x, BlockView<float> y) {
                                    for (int j = 0; j < x.extent(1); ++j) {
                                      y(j) = x(0, j);
                                      for (int i = 1; i < x.extent(0); ++i) y(j) = std::max(y(j), x(i, j));
                                    }
                                  }});
  for (const Shape& shape : {Shape{7, 5}, Shape{3, 2}, Shape{1, 4}}) {
    const Array x = data(shape, float32);
    expect_on_layouts([&](const Array& a) { return largest(a); }, x, max(x, 0));
  }
}

TEST(CustomOp, contracts_two_operands) {
  const auto op = product();
  const Array a = data({7, 5}), b = data({5, 9}, float64, 2), wanted = matmul(a, b);
  for (const Array& x : layouts_of(a))
    for (const Array& y : layouts_of(b)) expect_values(op(x, y), wanted, layout_text(x) + layout_text(y));
}

TEST(CustomOp, moves_what_the_rule_says_is_whole) {
  const auto running =
      custom_op({.name = "running", .rule = "B.. n -> B.. n | whole n", .kernel = [](const Blocks& blocks) {
                   const auto x = blocks.in<double>(0);
                   const auto y = blocks.out<double>();
                   const auto n = x.extent(x.rank() - 1);
                   for (std::int64_t at = 0; at < x.size(); at += n) {
                     double sum = 0;
                     for (std::int64_t j = at; j < at + n; ++j)
                       y.data_handle()[j] = sum += x.data_handle()[j];
                   }
                 }});
  for (const Shape& shape : {Shape{7, 5}, Shape{6}, Shape{2, 3, 5}, Shape{1, 9}, Shape{3, 0}}) {
    const Array x = data(shape);
    expect_on_layouts([&](const Array& a) { return running(a); }, x, cumsum(x, -1));
  }
  if (device_count() == 1) return;
  const Mesh line = make_mesh({device_count()}, {"x"});
  const Array split = device_put(data({16, 16}), line, P(None, "x")),
              rows = device_put(data({16, 16}), line, P("x"));
  const auto moves = explain([&](Array a) { return running(a); }, split);
  ASSERT_EQ(moves.collectives.size(), 1u);
  EXPECT_GT(moves.collectives[0].bytes, 0);
  EXPECT_THAT(printed(moves), testing::HasSubstr("running"));
  EXPECT_THAT(printed(moves), testing::HasSubstr("B.. n -> B.. n | whole n"));
  EXPECT_TRUE(explain([&](Array a) { return running(a); }, rows).collectives.empty());
}

TEST(CustomOp, takes_any_number_of_operands_and_dims) {
  const auto total = custom_op({.name = "total", .rule = "{D..} -> D..", .kernel = [](const Blocks& blocks) {
                                  const auto y = blocks.out<float>();
                                  for (std::int64_t i = 0; i < y.size(); ++i) {
                                    y.data_handle()[i] = 0;
                                    for (std::size_t n = 0; n < blocks.inputs(); ++n)
                                      y.data_handle()[i] += blocks.in<float>(n).data_handle()[i];
                                  }
                                }});
  const Array x = data({7, 3}, float32), y = data({7, 3}, float32, 2);
  expect_on_layouts([&](const Array& a) { return total.results({a, y, a})[0]; }, x, x + y + x);
  expect_on_layouts([&](const Array& a) { return total(a); }, x, x);
  expect_values(total(data({4}, bfloat16)), data({4}, bfloat16), "halves are widened");
}

TEST(CustomOp, has_several_results_and_knows_where_its_block_stands) {
  const auto places = custom_op(
      {.name = "places",
       .rule = "i j -> i j, i j",
       .kernel = [](BlockView<const float> x, BlockView<std::int32_t> row, BlockView<std::int32_t> size) {
         for (int i = 0; i < x.extent(0); ++i)
           for (int j = 0; j < x.extent(1); ++j) {
             row(i, j) = static_cast<std::int32_t>(x.start(0)) + i;
             size(i, j) = static_cast<std::int32_t>(x.global_shape()[1]);
           }
       }});
  for (const Array& x : layouts_of(data({5, 3}, float32))) {
    const auto all = places.results({x});
    expect_values(all[0], astype(broadcast_to(expand_dims(arange(5), 1), {5, 3}), int32), layout_text(x));
    expect_values(all[1], full({5, 3}, 3, int32), layout_text(x));
  }
}

// ---- margins ----

CustomOp weighted(int before, int after, std::optional<Boundary> boundary) {
  return custom_op({.name = "weighted",
                    .rule = "~i ~j -> i j",
                    .kernel =
                        [before, after](BlockView<const double> u, BlockView<double> y) {
                          for (int i = 0; i < y.extent(0); ++i)
                            for (int j = 0; j < y.extent(1); ++j) {
                              y(i, j) = 0;
                              for (int s = -before; s <= after; ++s)
                                for (int t = -after; t <= before; ++t)
                                  y(i, j) += (2 + s + 10 * t) * u(i + s, j + t);
                            }
                        },
                    .halo = {{"i", before, after, boundary, 0.5}, {"j", after, before, boundary, 0.5}}});
}
Array weighted_reference(const Array& x, int before, int after, std::optional<Boundary> boundary) {
  Array padded = x;
  const std::vector<std::pair<int, int>> widths{{before, after}, {after, before}};
  if (boundary) {
    const char* const modes[] = {"wrap", "constant", "edge", "reflect", "symmetric"};
    padded = pad(x, widths, modes[static_cast<int>(*boundary)], 0.5);
  }
  const auto rows = padded.shape()[0] - before - after, columns = padded.shape()[1] - before - after;
  Array total = zeros({rows, columns}, float64);
  for (int s = -before; s <= after; ++s)
    for (int t = -after; t <= before; ++t)
      total = total + (2.0 + s + 10 * t) *
                          padded(slice(s + before, s + before + rows), slice(t + after, t + after + columns));
  return total;
}

TEST(CustomOp, reads_margins_of_any_width_and_boundary) {
  using enum Boundary;
  for (const auto boundary : {std::optional(wrap), std::optional(constant), std::optional(edge),
                              std::optional(reflect), std::optional(symmetric), std::optional<Boundary>()})
    for (const auto& [before, after] : {std::pair{1, 1}, std::pair{0, 2}, std::pair{3, 2}})
      for (const Shape& shape : {Shape{7, 6}, Shape{13, 8}}) {
        const Array x = data(shape);
        const auto op = weighted(before, after, boundary);
        const Array wanted = weighted_reference(x, before, after, boundary);
        for (const Array& a : layouts_of(x))
          expect_values(op(a), wanted, layout_text(a) + " margin " + std::to_string(before), 1e-10);
      }
}

TEST(CustomOp, fetches_margins_and_nothing_more) {
  if (device_count() < 4) return;
  const auto op = weighted(1, 1, Boundary::wrap);
  const Array x = device_put(data({64, 32}), make_mesh({device_count()}, {"x"}), P("x"));
  const auto moves = explain([&](Array a) { return op(a); }, x);
  std::int64_t bytes = 0;
  for (const auto& c : moves.collectives) bytes += c.bytes;
  EXPECT_EQ(bytes, 2 * 32 * 8);  // a row from each neighbour
  debug::CommStats stats;
  eval(op(x));
  EXPECT_EQ(stats.bytes(), bytes);
}

TEST(CustomOp, reads_margins_of_one_operand_beside_another) {
  const auto op =
      custom_op({.name = "diffuse",
                 .rule = "~i, i -> i",
                 .kernel =
                     [](BlockView<const double> u, BlockView<const double> k, BlockView<double> y) {
                       for (int i = 0; i < y.extent(0); ++i) y(i) = k(i) * (u(i - 1) - 2 * u(i) + u(i + 1));
                     },
                 .halo = {{"i", 1, 1, Boundary::edge}},
                 .vjp = [](auto in, auto, auto g) -> std::vector<Array> {
                   const Array w = g[0] * in[1];
                   const Array inner =
                       shifted(w, 1, 0, Boundary::constant) - 2.0 * w + shifted(w, -1, 0, Boundary::constant);
                   return {inner.at(0).add(w(0)).at(-1).add(w(-1)),
                           g[0] * (shifted(in[0], 1, 0, Boundary::edge) - 2.0 * in[0] +
                                   shifted(in[0], -1, 0, Boundary::edge))};
                 }});
  const Array u = data({11}), k = data({11}, float64, 3);
  const auto by_ops = [](Array a, Array c) {
    return c * (shifted(a, 1, 0, Boundary::edge) - 2.0 * a + shifted(a, -1, 0, Boundary::edge));
  };
  for (const Array& a : layouts_of(u)) {
    expect_values(op(a, k), by_ops(u, k), layout_text(a));
    const auto [du, dk] = grad<0, 1>([&](Array v, Array c) { return sum(sin(op(v, c))); })(a, k);
    const auto [wanted_u, wanted_k] =
        grad<0, 1>([&](Array v, Array c) { return sum(sin(by_ops(v, c))); })(u, k);
    expect_values(du, wanted_u, "cotangent of u, " + layout_text(a), 1e-10);
    expect_values(dk, wanted_k, "cotangent of k, " + layout_text(a), 1e-10);
  }
}

// ---- transformations ----

TEST(CustomOp, is_mapped_as_the_loop_over_its_examples) {
  const auto op = product();
  const Array a = data({6, 3, 4}), b = data({4, 5}, float64, 2), many = data({6, 4, 5}, float64, 3);
  for (const Array& x : layouts_of(a)) {
    expect_values(vmap([&](Array v, Array w) { return op(v, w); }, {.in_axes = {0, None}})(x, b),
                  matmul(a, b), "one b, " + layout_text(x));
    expect_values(vmap([&](Array v, Array w) { return op(v, w); })(x, many), matmul(a, many),
                  "many b, " + layout_text(x));
    expect_values(vmap([&](Array v) { return vmap([&](Array w) { return op(v, w); })(many); })(x),
                  matmul(expand_dims(a, 1), expand_dims(many, 0)), "nested, " + layout_text(x), 1e-10);
  }
  const auto stencil = weighted(1, 2, Boundary::reflect);
  const Array images = data({3, 7, 5});
  for (const Array& x : layouts_of(images)) {
    std::vector<Array> rows;
    for (int i = 0; i < 3; ++i) rows.push_back(weighted_reference(images(i), 1, 2, Boundary::reflect));
    expect_values(vmap([&](Array v) { return stencil(v); })(x), stack(rows, 0), layout_text(x), 1e-10);
  }
}

TEST(CustomOp, takes_a_batching_rule) {
  int calls = 0;
  const auto op = custom_op({.name = "twice",
                             .rule = "B.. -> B..",
                             .kernel =
                                 [&calls](const Blocks& blocks) {
                                   ++calls;
                                   for (std::int64_t i = 0; i < blocks.out<double>().size(); ++i)
                                     blocks.out<double>().data_handle()[i] =
                                         2 * blocks.in<double>(0).data_handle()[i];
                                 },
                             .batch = {}});
  const Array x = data({5, 3});
  expect_values(vmap([&](Array v) { return op(v); })(x), 2.0 * x, "by looping");
  EXPECT_EQ(calls, 5);
  const auto at_once = custom_op({.name = "at_once",
                                  .rule = "n -> n",
                                  .kernel = [](BlockView<const double>, BlockView<double>) {},
                                  .batch = [&op](auto in, auto dims, std::int64_t) -> std::vector<Array> {
                                    return {op(moveaxis(in[0], dims[0], 0))};
                                  }});
  calls = 0;
  for (const int axis : {0, 1})
    expect_values(vmap([&](Array v) { return at_once(v); }, {.in_axes = axis})(x),
                  2.0 * (axis == 0 ? x : x.T()), "by its rule");
  EXPECT_EQ(calls, 2);
}

TEST(CustomOp, is_differentiated_by_its_rule) {
  const auto op = product();
  const Array a = data({5, 4}), b = data({4, 3}, float64, 2);
  const auto f = [&](Array x, Array y) { return sum(sin(op(x, y))); };
  const auto g = [&](Array x, Array y) { return sum(sin(matmul(x, y))); };
  for (const Array& x : layouts_of(a)) {
    const auto [da, db] = grad<0, 1>(f)(x, b);
    const auto [wanted_a, wanted_b] = grad<0, 1>(g)(a, b);
    expect_values(da, wanted_a, layout_text(x), 1e-10);
    expect_values(db, wanted_b, layout_text(x), 1e-10);
    const double h = 1e-6;  // compared with the finite difference
    const double difference =
        item<double>(f(a + h * data({5, 4}, float64, 7), b) - f(a - h * data({5, 4}, float64, 7), b)) /
        (2 * h);
    EXPECT_NEAR(item<double>(sum(da * data({5, 4}, float64, 7))), difference, 1e-7);
    const auto forward = jvp(f, std::tuple{x, b}, std::tuple{data({5, 4}, float64, 7), zeros_like(b)});
    EXPECT_NEAR(item<double>(forward.second), difference, 1e-7);
  }
}

TEST(CustomOp, is_differentiated_below_and_above_vmap) {
  const auto op = product();
  const Array a = data({6, 3, 4}), b = data({4, 5}, float64, 2);
  const auto f = [&](Array x, Array y) { return sum(sin(op(x, y))); };
  const auto g = [&](Array x, Array y) { return sum(sin(matmul(x, y))); };
  for (const Array& x : layouts_of(a)) {
    expect_values(vmap(grad(f), {.in_axes = {0, None}})(x, b), vmap(grad(g), {.in_axes = {0, None}})(a, b),
                  "vmap of grad, " + layout_text(x), 1e-10);
    const auto sum_of = [](auto one) {
      return [one](Array v, Array w) { return sum(vmap(one, {.in_axes = {0, None}})(v, w)); };
    };
    const auto [da, db] = grad<0, 1>(sum_of(f))(x, b);
    const auto [wanted_a, wanted_b] = grad<0, 1>(sum_of(g))(a, b);
    expect_values(da, wanted_a, "grad of vmap, " + layout_text(x), 1e-10);
    expect_values(db, wanted_b, "grad of vmap, shared operand, " + layout_text(x), 1e-10);
  }
}

TEST(CustomOp, takes_a_forward_rule_alone) {
  const auto op = custom_op(
      {.name = "cube",
       .rule = "D.. -> D..",
       .kernel =
           [](const Blocks& blocks) {
             for (std::int64_t i = 0; i < blocks.out<double>().size(); ++i)
               blocks.out<double>().data_handle()[i] = std::pow(blocks.in<double>(0).data_handle()[i], 3);
           },
       .jvp = [](auto in, auto, auto t) -> std::vector<Array> { return {3.0 * in[0] * in[0] * t[0]}; }});
  const Array x = data({7, 3});
  for (const Array& a : layouts_of(x)) {
    expect_values(grad([&](Array v) { return sum(op(v)); })(a), 3.0 * x * x, "grad, " + layout_text(a));
    const auto forward = jvp([&](Array v) { return op(v); }, std::tuple{a}, std::tuple{x});
    expect_values(forward.second, 3.0 * x * x * x, "jvp, " + layout_text(a));
    expect_values(vmap(grad([&](Array v) { return sum(op(v)); }))(a), 3.0 * x * x, "vmap of grad");
  }
}

TEST(CustomOp, works_on_the_blocks_of_shard_map) {
  const int p = device_count();
  const Mesh line = make_mesh({p}, {"x"});
  const auto op = row_squares();
  const Array x = data({2 * p, 3});
  const auto mapped = shard_map([&](Array block) { return op(block); }, line, P("x", None), P("x"));
  expect_values(mapped(x), sum(x * x, 1), "shard_map");
}

TEST(CustomOp, keeps_the_plan_of_one_object_and_not_of_another) {
  const auto scaled = [](double by) {
    return custom_op(
        {.name = "scaled", .rule = "i -> i", .kernel = [by](BlockView<const double> x, BlockView<double> y) {
           for (int i = 0; i < x.extent(0); ++i) y(i) = by * x(i);
         }});
  };
  const Array x = data({5});
  const auto two = scaled(2), three = scaled(3);
  for (int round = 0; round < 2; ++round) {
    expect_values(two(x), 2.0 * x, "two");
    expect_values(three(x), 3.0 * x, "three");
  }
  expect_values(two(three(x)) + 1, 6.0 * x + 1.0, "both, and a number");
}

}  // namespace
