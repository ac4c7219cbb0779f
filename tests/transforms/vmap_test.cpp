// vmap over trees and axes, names of examples, and refusals. Single functions are tested in tests/catalogue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/collectives.hpp>
#include <tessera/maps.hpp>
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>

#include <cmath>

#include "support/compare.hpp"
#include "support/errors.hpp"

namespace {

using namespace tessera;
using test::expect_error;
using test::expect_same;

// Distinct values in (0.1, 1.9), so that logarithms and roots are defined.
Array data(Shape shape, int seed = 1) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    values.push_back(1.0 + 0.9 * std::sin(static_cast<double>(i * 7 + seed * 13)));
  return array(HostArray(values, shape));
}

TEST(Vmap, maps_nested_trees_and_axes) {
  const Array a = data({3, 4}), b = data({4, 3}, 2), c = data({2}, 3);
  const auto f = [](const std::pair<Array, std::vector<Array>>& t, double scale) {
    return std::map<std::string, Array>{{"product", t.first * t.second[0] * scale},
                                        {"sum", sum(t.first) + t.second[1]}};
  };
  const auto y =
      vmap(f, {.in_axes = {{0, {1, None}}, None}, .out_axes = {-1, 0}})(std::pair{a, std::vector{b, c}}, 2.0);
  EXPECT_EQ(y.at("product").shape(), (Shape{4, 3}));
  expect_same(y.at("product"), transpose(a * transpose(b) * 2.0), "product");
  expect_same(y.at("sum"), expand_dims(sum(a, 1), 1) + c, "sum");
}

TEST(Vmap, nests_and_out_axes_place_the_batch) {
  const Array x = data({2, 3, 4}), y = data({3, 5}, 2);
  const auto g = vmap(vmap([](const Array& a, const Array& b) { return outer(a, b); }),
                      {.in_axes = {0, None}, .out_axes = 1});
  const Array z = g(x, y);
  ASSERT_EQ(z.shape(), (Shape{3, 2, 4, 5}));
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) expect_same(z(j, i), outer(x(i, j), y(j)), "outer");
}

TEST(Vmap, what_does_not_depend_on_the_example_is_computed_once) {
  const Array w = data({4});
  const auto [a, b, c] = vmap(
      [&](const Array& x) {
        return std::tuple{x + sum(w), sum(w), sum(w)};
      },
      {.out_axes = {0, None, 0}})(data({3, 4}));
  EXPECT_EQ(a.shape(), (Shape{3, 4}));
  EXPECT_EQ(b.shape(), Shape{});
  EXPECT_EQ(c.shape(), (Shape{3}));
  EXPECT_EQ(to_vector<double>(c), std::vector<double>(3, item<double>(b)));
}

TEST(Vmap, axis_size_alone_repeats) {
  const Array y = vmap([](const Array& x) { return x * 2; }, {.in_axes = None, .axis_size = 4})(data({3}));
  EXPECT_EQ(y.shape(), (Shape{4, 3}));
}

TEST(Vmap, keeps_the_sharding_of_the_examples) {
  const int p = device_count();
  const Array x = device_put(data({2 * p, 3}), make_mesh({p}, {"x"}), P("x"));
  const Array y = vmap([](const Array& row) { return row / sum(row); })(x);
  EXPECT_EQ(y.sharding(), NamedSharding(make_mesh({p}, {"x"}), P("x")));
  expect_same(y, x / sum(x, 1, true), "normalise");
}

// ---- axis names ----
TEST(VmapNames, collectives_over_the_name_are_arithmetic_on_the_examples) {
  const Array x = data({4, 4, 3});
  const auto mapped = [&](auto f) { return vmap(f, {.axis_name = "i"})(x); };
  expect_same(mapped([](const Array& e) { return psum(e, "i"); }), broadcast_to(sum(x, 0, true), {4, 4, 3}),
              "psum");
  expect_same(mapped([](const Array& e) { return pmean(e, "i") + pmax(e, "i") - pmin(e, "i"); }),
              broadcast_to(mean(x, 0, true) + max(x, 0, true) - min(x, 0, true), {4, 4, 3}),
              "pmean, pmax, pmin");
  expect_same(mapped([](const Array& e) { return all_gather(e, "i", {.axis = 1}); }),
              stack({moveaxis(x, 0, 1), moveaxis(x, 0, 1), moveaxis(x, 0, 1), moveaxis(x, 0, 1)}),
              "all_gather");
  expect_same(mapped([](const Array& e) { return psum_scatter(e, "i"); }), sum(x, 0), "psum_scatter");
  expect_same(mapped([](const Array& e) { return all_to_all(e, "i", 0, 0); }), swapaxes(x, 0, 1),
              "all_to_all");
  expect_same(mapped([](const Array& e) { return all_to_all(e, "i", 0, 1); }), transpose(x, {1, 2, 0}),
              "all_to_all to the end");
  expect_same(mapped([](const Array& e) { return pswapaxes(e, "i", 0); }), swapaxes(x, 0, 1), "pswapaxes");
  expect_same(mapped([](const Array& e) {
                return ppermute(e, "i", {{0, 1}, {1, 2}, {2, 3}});
              }),
              concatenate({zeros({1, 4, 3}, float64), x(slice(0, 3))}), "ppermute");
  expect_same(mapped([](const Array& e) { return pshuffle(e, "i", {3, 2, 1, 0}); }), flip(x, 0), "pshuffle");
  expect_same(mapped([](const Array& e) { return pbroadcast(e, "i", 2); }),
              broadcast_to(x(slice(2, 3)), {4, 4, 3}), "pbroadcast");
  expect_same(mapped([](const Array& e) { return e * axis_index("i") + axis_size("i"); }),
              x * reshape(arange(4), {4, 1, 1}) + 4, "axis_index");
  expect_same(mapped([](const Array& e) { return pargmax(e, "i"); }),
              broadcast_to(expand_dims(argmax(x, 0), 0), {4, 4, 3}), "pargmax");
}

TEST(VmapNames, groups_of_examples_work_for_themselves) {
  const Array x = data({4, 2, 3});
  const Groups groups = {{0, 3}, {2, 1}};
  const auto mapped = [&](auto f) { return vmap(f, {.axis_name = "i"})(x); };
  const Array a = x(0) + x(3), b = x(1) + x(2);
  expect_same(mapped([&](const Array& e) { return psum(e, "i", {groups}); }), stack({a, b, b, a}), "psum");
  expect_same(mapped([&](const Array& e) {
                return psum(e, "i", {{{1}, {0, 2, 3}}});
              }),
              stack({a + x(2), x(1), a + x(2), a + x(2)}), "psum, uneven groups");
  expect_same(mapped([&](const Array& e) {
                return pmin(-e, "i", {{{1}, {0, 2, 3}}});
              }),
              stack({minimum(minimum(-x(0), -x(2)), -x(3)), -x(1), minimum(minimum(-x(0), -x(2)), -x(3)),
                     minimum(minimum(-x(0), -x(2)), -x(3))}),
              "pmin, uneven groups");
  expect_same(mapped([&](const Array& e) { return all_gather(e, "i", {.axis_index_groups = groups}); }),
              stack({stack({x(0), x(3)}), stack({x(2), x(1)}), stack({x(2), x(1)}), stack({x(0), x(3)})}),
              "all_gather");
  expect_same(mapped([&](const Array& e) { return psum_scatter(e, "i", {.axis_index_groups = groups}); }),
              stack({a(0), b(1), b(0), a(1)}), "psum_scatter");
  expect_same(mapped([&](const Array& e) { return all_to_all(e, "i", 0, 0, {.axis_index_groups = groups}); }),
              stack({stack({x(0, 0), x(3, 0)}), stack({x(2, 1), x(1, 1)}), stack({x(2, 0), x(1, 0)}),
                     stack({x(0, 1), x(3, 1)})}),
              "all_to_all");
}

TEST(VmapNames, inner_and_outer_names) {
  const Array x = data({3, 4});
  const auto f = [](const Array& e) {
    return std::tuple{e / psum(e, "inner"), e / psum(e, "outer"), e / psum(e, axes("outer", "inner")),
                      axis_index(axes("inner", "outer"))};
  };
  const auto [a, b, c, d] = vmap(vmap(f, {.axis_name = "inner"}), {.axis_name = "outer"})(x);
  expect_same(a, x / sum(x, 1, true), "inner");
  expect_same(b, x / sum(x, 0, true), "outer");
  expect_same(c, x / sum(x), "both");
  EXPECT_EQ(to_vector<int>(d), (std::vector<int>{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}));
}

TEST(VmapNames, psum_of_numbers_and_of_what_all_share) {
  const auto [a, b] = vmap(
      [](const Array& e) {
        return std::tuple{e * psum(1, "i"), e + psum(ones({}, float64) * 3, "i")};
      },
      {.axis_name = "i"})(data({4}));
  expect_same(a, data({4}) * 4, "psum(1)");
  expect_same(b, data({4}) + 12, "psum of a shared value");
}

// ---- errors ----

TEST(VmapErrors, name_the_sizes_and_the_way_out) {
  const auto add = [](const Array& a, const Array& b) { return a + b; };
  expect_error<ArgumentError>([&] { vmap(add)(data({3}), data({4})); }, {"vmap", "size 3", "size 4", "None"});
  expect_error<ArgumentError>([&] { vmap(add, {.in_axes = None})(data({3}), data({4})); },
                              {"no argument is mapped", "axis_size"});
  expect_error<ArgumentError>([&] { vmap(add, {.axis_size = 5})(data({3}), data({3})); }, {"5", "size 3"});
  expect_error<IndexError>(
      [&] {
        vmap(add, {.in_axes = {0, 2}})(data({3}), data({3, 4}));
      },
      {"axis 2", "2 dimensions"});
  expect_error<IndexError>([&] { vmap(add)(data({}), data({3})); }, {"scalar", "None"});
  expect_error<ArgumentError>(
      [&] {
        vmap(add, {.in_axes = {0, 0, 0}})(data({3}), data({3}));
      },
      {"in_axes", "2 parts", "3"});
  expect_error<ArgumentError>([&] { vmap(add, {.out_axes = None})(data({3}), data({3})); },
                              {"result 0", "out_axes is None"});
  expect_error<IndexError>([&] { vmap(add, {.out_axes = 1})(data({3}), data({3})); },
                           {"out_axes", "axis 1", "1 dimension"});
  expect_error<AxisNameError>([&] { psum(data({3}), "i"); },
                              {"psum", "'i'", "no axis name is bound", "vmap", "shard_map", "pmap"});
  expect_error<AxisNameError>(
      [&] { vmap([](const Array& x) { return psum(x, "j"); }, {.axis_name = "i"})(data({3})); },
      {"'j'", "'i' (size 3", "vmap_test.cpp"});
  expect_error<ArgumentError>([&] { vmap([](const Array& x) { return x + item<double>(x); })(data({3})); },
                              {"vmap"});
}

}  // namespace
