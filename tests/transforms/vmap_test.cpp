// vmap is the loop over its examples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/collectives.hpp>
#include <tessera/maps.hpp>
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>

#include <cmath>

#include "support/errors.hpp"

namespace {

using namespace tessera;
using test::expect_error;

// Values that differ everywhere, within (0.1, 1.9), so that logarithms and roots are defined.
Array data(Shape shape, int seed = 1) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    values.push_back(1.0 + 0.9 * std::sin(static_cast<double>(i * 7 + seed * 13)));
  return array(HostArray(values, shape));
}

Array example(const Array& x, int axis, int i) {
  std::vector<IndexPart> parts(x.ndim(), IndexPart(slice()));
  parts[axis] = IndexPart(i);
  return index(x, parts);
}

void expect_close(const Array& got, const Array& wanted, const std::string& what) {
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  EXPECT_EQ(got.dtype(), wanted.dtype()) << what;
  const auto a = to_vector<double>(got), b = to_vector<double>(wanted);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(b[i]))
      EXPECT_TRUE(std::isnan(a[i])) << what;
    else
      ASSERT_NEAR(a[i], b[i], 1e-12 * (1 + std::abs(b[i]))) << what << " element " << i;
  }
}

// f on examples along `axis` of shape `one`, mapped at once and one by one; plain and split over all ranks.
template <class F> void expect_loop(F f, Shape one, const std::string& what) {
  const int n = 3;
  for (int axis = 0; axis <= one.ndim(); ++axis) {
    auto extents = one.vector();
    extents.insert(extents.begin() + axis, n);
    const Array x = data(Shape(extents));
    std::vector<Array> rows;
    for (int i = 0; i < n; ++i) rows.push_back(f(example(x, axis, i)));
    const Array wanted = stack(rows, 0);
    expect_close(vmap(f, {.in_axes = axis})(x), wanted, what + " axis " + std::to_string(axis));
    expect_close(vmap(f, {.in_axes = axis - one.ndim() - 1})(x), wanted, what + " negative axis");
    for (int d = 0; d <= one.ndim(); ++d) {
      std::vector<DimSpec> spec(static_cast<std::size_t>(one.ndim()) + 1, DimSpec(None));
      spec[d] = DimSpec("x");
      const Array sharded = device_put(x, make_mesh({device_count()}, {"x"}), PartitionSpec(spec));
      expect_close(vmap(f, {.in_axes = axis})(sharded), wanted,
                   what + " axis " + std::to_string(axis) + " split on " + std::to_string(d));
    }
  }
}

template <class F> void expect_loop2(F f, Shape one_a, Shape one_b, const std::string& what) {
  const int n = 3;
  const auto with = [&](const Shape& one, int axis) {
    auto extents = one.vector();
    if (axis >= 0) extents.insert(extents.begin() + axis, n);
    return Shape(extents);
  };
  for (int axis_a = -1; axis_a <= one_a.ndim(); ++axis_a)
    for (int axis_b = -1; axis_b <= one_b.ndim(); ++axis_b) {
      if (axis_a < 0 && axis_b < 0) continue;
      const Array a = data(with(one_a, axis_a), 1), b = data(with(one_b, axis_b), 2);
      std::vector<Array> rows;
      for (int i = 0; i < n; ++i)
        rows.push_back(f(axis_a < 0 ? a : example(a, axis_a, i), axis_b < 0 ? b : example(b, axis_b, i)));
      const AxesTree in_a = axis_a < 0 ? AxesTree(None) : AxesTree(axis_a),
                     in_b = axis_b < 0 ? AxesTree(None) : AxesTree(axis_b);
      expect_close(vmap(f, {.in_axes = {in_a, in_b}})(a, b), stack(rows, 0),
                   what + " axes " + std::to_string(axis_a) + ", " + std::to_string(axis_b));
    }
}

TEST(Vmap, OfElementwiseOpsIsTheLoop) {
  expect_loop([](const Array& x) { return exp(x) + sqrt(x) * 2.0 - 1.0 / x; }, {4, 2}, "arithmetic");
  expect_loop([](const Array& x) { return where(x > 1.0, x, -x); }, {5}, "where");
  expect_loop([](const Array& x) { return astype(x * 10, int32); }, {5}, "astype");
  expect_loop2([](const Array& a, const Array& b) { return a * b + a; }, {4}, {3, 4}, "broadcast");
  expect_loop2([](const Array& a, const Array& b) { return maximum(a, b) - power(a, b); }, {}, {3}, "scalar");
}

TEST(Vmap, OfReductionsIsTheLoop) {
  expect_loop([](const Array& x) { return sum(x); }, {4, 3}, "sum");
  expect_loop([](const Array& x) { return max(x, 1); }, {4, 3}, "max");
  expect_loop([](const Array& x) { return mean(x, 0, true) + tessera::std(x, {0, 1}); }, {4, 3}, "mean, std");
  expect_loop([](const Array& x) { return prod(x, -1); }, {4, 3}, "prod");
  expect_loop([](const Array& x) { return logsumexp(x, 0); }, {4, 3}, "logsumexp");
}

TEST(Vmap, OfShapeOpsIsTheLoop) {
  expect_loop([](const Array& x) { return reshape(x, {3, 4}); }, {4, 3}, "reshape");
  expect_loop([](const Array& x) { return transpose(x); }, {4, 3}, "transpose");
  expect_loop([](const Array& x) { return broadcast_to(expand_dims(x, 0), {2, 5}); }, {5}, "broadcast_to");
  expect_loop([](const Array& x) { return x(slice(1, 4), newaxis); }, {5}, "slice");
  expect_loop(
      [](const Array& x) {
        return concatenate({x, x * 2, zeros({2, 3}, float64)}, 0);
      },
      {4, 3}, "concatenate");
  expect_loop([](const Array& x) { return stack({x, x + 1}, 1); }, {4, 3}, "stack");
  expect_loop([](const Array& x) { return flip(x, 0) + roll(x, 1, 1); }, {4, 3}, "flip, roll");
  expect_loop([](const Array& x) { return pad(x, {{1, 0}, {0, 2}}, 7); }, {2, 3}, "pad");
  expect_loop([](const Array& x) { return tile(x, {2, 1}) + repeat(x, 2, 0); }, {2, 3}, "tile, repeat");
  expect_loop([](const Array& x) { return tril(x) + triu(x, 1) * diagonal(x); }, {3, 3},
              "tril, triu, diagonal");
  expect_loop([](const Array& x) { return squeeze(x, 1); }, {3, 1}, "squeeze");
  expect_loop([](const Array& x) { return split(x, 2, 0)[1]; }, {4, 3}, "split");
  expect_loop([](const Array& x) { return x.at(0).set(9.0); }, {4, 3}, "at.set");
}

TEST(Vmap, OfContractionsIsTheLoop) {
  expect_loop2([](const Array& a, const Array& b) { return matmul(a, b); }, {4, 3}, {3, 2}, "matmul");
  expect_loop2([](const Array& a, const Array& b) { return matmul(a, b); }, {2, 4, 3}, {3},
               "batched matmul with a vector");
  expect_loop2([](const Array& a, const Array& b) { return dot(a, b) + vdot(a, b); }, {3}, {3}, "dot");
  expect_loop2([](const Array& a, const Array& b) { return outer(a, b); }, {3}, {2}, "outer");
  expect_loop2(
      [](const Array& a, const Array& b) {
        return tensordot(a, b, {{0}, {1}});
      },
      {4, 3}, {2, 4}, "tensordot");
}

TEST(Vmap, MapsNestedTreesAndAxes) {
  const Array a = data({3, 4}), b = data({4, 3}, 2), c = data({2}, 3);
  const auto f = [](const std::pair<Array, std::vector<Array>>& t, double scale) {
    return std::map<std::string, Array>{{"product", t.first * t.second[0] * scale},
                                        {"sum", sum(t.first) + t.second[1]}};
  };
  const auto y =
      vmap(f, {.in_axes = {{0, {1, None}}, None}, .out_axes = {-1, 0}})(std::pair{a, std::vector{b, c}}, 2.0);
  EXPECT_EQ(y.at("product").shape(), (Shape{4, 3}));
  expect_close(y.at("product"), transpose(a * transpose(b) * 2.0), "product");
  expect_close(y.at("sum"), expand_dims(sum(a, 1), 1) + c, "sum");
}

TEST(Vmap, NestsAndOutAxesPlaceTheBatch) {
  const Array x = data({2, 3, 4}), y = data({3, 5}, 2);
  const auto g = vmap(vmap([](const Array& a, const Array& b) { return outer(a, b); }),
                      {.in_axes = {0, None}, .out_axes = 1});
  const Array z = g(x, y);
  ASSERT_EQ(z.shape(), (Shape{3, 2, 4, 5}));
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) expect_close(z(j, i), outer(x(i, j), y(j)), "outer");
}

TEST(Vmap, WhatDoesNotDependOnTheExampleIsComputedOnce) {
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

TEST(Vmap, AxisSizeAloneRepeats) {
  const Array y = vmap([](const Array& x) { return x * 2; }, {.in_axes = None, .axis_size = 4})(data({3}));
  EXPECT_EQ(y.shape(), (Shape{4, 3}));
}

TEST(Vmap, KeepsTheShardingOfTheExamples) {
  const int p = device_count();
  const Array x = device_put(data({2 * p, 3}), make_mesh({p}, {"x"}), P("x"));
  const Array y = vmap([](const Array& row) { return row / sum(row); })(x);
  EXPECT_EQ(y.sharding(), NamedSharding(make_mesh({p}, {"x"}), P("x")));
  expect_close(y, x / sum(x, 1, true), "normalise");
}

// ---- axis names ----
TEST(VmapNames, CollectivesOverTheNameAreArithmeticOnTheExamples) {
  const Array x = data({4, 4, 3});
  const auto mapped = [&](auto f) { return vmap(f, {.axis_name = "i"})(x); };
  expect_close(mapped([](const Array& e) { return psum(e, "i"); }), broadcast_to(sum(x, 0, true), {4, 4, 3}),
               "psum");
  expect_close(mapped([](const Array& e) { return pmean(e, "i") + pmax(e, "i") - pmin(e, "i"); }),
               broadcast_to(mean(x, 0, true) + max(x, 0, true) - min(x, 0, true), {4, 4, 3}),
               "pmean, pmax, pmin");
  expect_close(mapped([](const Array& e) { return all_gather(e, "i", {.axis = 1}); }),
               stack({moveaxis(x, 0, 1), moveaxis(x, 0, 1), moveaxis(x, 0, 1), moveaxis(x, 0, 1)}),
               "all_gather");
  expect_close(mapped([](const Array& e) { return psum_scatter(e, "i"); }), sum(x, 0), "psum_scatter");
  expect_close(mapped([](const Array& e) { return all_to_all(e, "i", 0, 0); }), swapaxes(x, 0, 1),
               "all_to_all");
  expect_close(mapped([](const Array& e) { return all_to_all(e, "i", 0, 1); }), transpose(x, {1, 2, 0}),
               "all_to_all to the end");
  expect_close(mapped([](const Array& e) { return pswapaxes(e, "i", 0); }), swapaxes(x, 0, 1), "pswapaxes");
  expect_close(mapped([](const Array& e) {
                 return ppermute(e, "i", {{0, 1}, {1, 2}, {2, 3}});
               }),
               concatenate({zeros({1, 4, 3}, float64), x(slice(0, 3))}), "ppermute");
  expect_close(mapped([](const Array& e) { return pshuffle(e, "i", {3, 2, 1, 0}); }), flip(x, 0), "pshuffle");
  expect_close(mapped([](const Array& e) { return pbroadcast(e, "i", 2); }),
               broadcast_to(x(slice(2, 3)), {4, 4, 3}), "pbroadcast");
  expect_close(mapped([](const Array& e) { return e * axis_index("i") + axis_size("i"); }),
               x * reshape(arange(4), {4, 1, 1}) + 4, "axis_index");
  expect_close(mapped([](const Array& e) { return pargmax(e, "i"); }),
               broadcast_to(expand_dims(argmax(x, 0), 0), {4, 4, 3}), "pargmax");
}

TEST(VmapNames, GroupsOfExamplesWorkForThemselves) {
  const Array x = data({4, 2, 3});
  const Groups groups = {{0, 3}, {2, 1}};
  const auto mapped = [&](auto f) { return vmap(f, {.axis_name = "i"})(x); };
  const Array a = x(0) + x(3), b = x(1) + x(2);
  expect_close(mapped([&](const Array& e) { return psum(e, "i", {groups}); }), stack({a, b, b, a}), "psum");
  expect_close(mapped([&](const Array& e) {
                 return psum(e, "i", {{{1}, {0, 2, 3}}});
               }),
               stack({a + x(2), x(1), a + x(2), a + x(2)}), "psum, uneven groups");
  expect_close(mapped([&](const Array& e) {
                 return pmin(-e, "i", {{{1}, {0, 2, 3}}});
               }),
               stack({minimum(minimum(-x(0), -x(2)), -x(3)), -x(1), minimum(minimum(-x(0), -x(2)), -x(3)),
                      minimum(minimum(-x(0), -x(2)), -x(3))}),
               "pmin, uneven groups");
  expect_close(mapped([&](const Array& e) { return all_gather(e, "i", {.axis_index_groups = groups}); }),
               stack({stack({x(0), x(3)}), stack({x(2), x(1)}), stack({x(2), x(1)}), stack({x(0), x(3)})}),
               "all_gather");
  expect_close(mapped([&](const Array& e) { return psum_scatter(e, "i", {.axis_index_groups = groups}); }),
               stack({a(0), b(1), b(0), a(1)}), "psum_scatter");
  expect_close(
      mapped([&](const Array& e) { return all_to_all(e, "i", 0, 0, {.axis_index_groups = groups}); }),
      stack({stack({x(0, 0), x(3, 0)}), stack({x(2, 1), x(1, 1)}), stack({x(2, 0), x(1, 0)}),
             stack({x(0, 1), x(3, 1)})}),
      "all_to_all");
}

TEST(VmapNames, InnerAndOuterNames) {
  const Array x = data({3, 4});
  const auto f = [](const Array& e) {
    return std::tuple{e / psum(e, "inner"), e / psum(e, "outer"), e / psum(e, axes("outer", "inner")),
                      axis_index(axes("inner", "outer"))};
  };
  const auto [a, b, c, d] = vmap(vmap(f, {.axis_name = "inner"}), {.axis_name = "outer"})(x);
  expect_close(a, x / sum(x, 1, true), "inner");
  expect_close(b, x / sum(x, 0, true), "outer");
  expect_close(c, x / sum(x), "both");
  EXPECT_EQ(to_vector<int>(d), (std::vector<int>{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}));
}

TEST(VmapNames, PsumOfNumbersAndOfWhatAllShare) {
  const auto [a, b] = vmap(
      [](const Array& e) {
        return std::tuple{e * psum(1, "i"), e + psum(ones({}, float64) * 3, "i")};
      },
      {.axis_name = "i"})(data({4}));
  expect_close(a, data({4}) * 4, "psum(1)");
  expect_close(b, data({4}) + 12, "psum of a shared value");
}

// ---- errors ----

TEST(VmapErrors, NameTheSizesAndTheWayOut) {
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
