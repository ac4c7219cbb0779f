// pmap: example i runs on device i.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/tessera.hpp>

#include <cmath>

#include "support/compare.hpp"
#include "support/errors.hpp"

namespace {

using namespace tessera;
using test::expect_equal;
using test::expect_error;

Array data(Shape shape, int seed = 1) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    values.push_back(static_cast<float>((i * 7 + seed * 5) % 13 + 1));
  return array(HostArray(values, shape));
}

TEST(Pmap, one_example_per_device_for_any_number_up_to_all) {
  for (int n = 1; n <= device_count(); ++n) {
    const Array x = data({n, 4, 3}), y = data({n, 3, 2}, 2);
    const Array z = pmap([](const Array& a, const Array& b) {
      EXPECT_EQ(a.shape(), (Shape{4, 3}));
      return matmul(a, b);
    })(x, y);
    expect_equal(z, matmul(x, y), "matmul");
    const auto first = devices();
    EXPECT_EQ(z.sharding(), NamedSharding(make_mesh({n}, {"i"}), P("i")));
    EXPECT_EQ(local<float>(z).size(), process_index() < n ? 8u : 0u);
    const Array again = pmap([](const Array& a) { return a + 1; })(z);
    expect_equal(again, z + 1, "results as arguments");
  }
}

TEST(Pmap, names_normalise_over_the_examples) {
  const int n = device_count();
  const Array x = data({n, 3});
  const Array y = pmap([](const Array& a) { return a / psum(a, "i") + axis_index("i") * axis_size("i"); },
                       {.axis_name = "i"})(x);
  expect_equal(y, x / sum(x, 0, true) + reshape(arange(n) * n, {n, 1}), "normalise", 1e-6);
}

TEST(Pmap, in_and_out_axes_at_any_dimension) {
  const int n = device_count();
  const Array x = data({4, n, 3}), y = data({3, n}, 2), shared = data({4}, 3);
  for (const int out : {0, 1, 2, -1, -2}) {
    const auto f =
        pmap([](const Array& a, const Array& b, const Array& s) { return a * b + expand_dims(s, 1); },
             {.in_axes = {1, -1, None}, .out_axes = out});
    const auto g =
        vmap([](const Array& a, const Array& b, const Array& s) { return a * b + expand_dims(s, 1); },
             {.in_axes = {1, -1, None}, .out_axes = out});
    expect_equal(f(x, y, shared), g(x, y, shared), "out " + std::to_string(out));
  }
  const auto [total, own] = pmap(
      [](const Array& a) {
        return std::pair{psum(a, "i"), a};
      },
      {.axis_name = "i", .out_axes = {None, 0}})(data({n, 2}));
  expect_equal(total, sum(data({n, 2}), 0), "one value for all");
  EXPECT_EQ(total.shape(), (Shape{2}));
}

TEST(Pmap, trees_and_numbers_pass_through) {
  const int n = device_count();
  struct Model {
    Array w;
    std::vector<Array> b;
    double rate;
  };
  const Model model{data({n, 2}), {data({n}, 2), data({n, 3}, 3)}, 0.5};
  const Model next = pmap([](const Model& m) {
    return Model{m.w * m.rate, {m.b[0] + 1, m.b[1]}, m.rate / 2};
  })(model);
  expect_equal(next.w, model.w * 0.5, "w");
  expect_equal(next.b[0], model.b[0] + 1, "b0");
  EXPECT_EQ(next.rate, 0.25);
}

TEST(Pmap, on_given_devices) {
  const int n = device_count();
  std::vector<Device> backwards;
  for (int i = n; i-- > 0;) backwards.push_back(devices()[i]);
  const Array y = pmap(
      [](const Array& a) {
        return a * 2 + ppermute(a, "i", {{0, 0}});
      },
      {.axis_name = "i", .devices = backwards})(data({n, 2}));
  EXPECT_EQ(y.sharding(), NamedSharding(make_mesh({n}, {"i"}, backwards), P("i")));
  const Array mask = astype(reshape(arange(n), {n, 1}) == 0, float32);
  expect_equal(y, data({n, 2}) * (mask + 2), "values");
}

TEST(Pmap, nests_over_a_product_of_devices) {
  const int p = device_count();
  for (int n = 1; n <= p; ++n) {
    const int m = p / n;
    const Array x = data({n, m, 3});
    const auto f = [](const Array& a) {
      return std::tuple{a / psum(a, "in"), a / psum(a, "out"), a / psum(a, axes("out", "in")),
                        axis_index(axes("in", "out"))};
    };
    const auto both_mapped = pmap(pmap(f, {.axis_name = "in"}), {.axis_name = "out"});
    const auto both_batched = vmap(vmap(f, {.axis_name = "in"}), {.axis_name = "out"});
    const auto [a, b, c, d] = both_mapped(x);
    const auto [va, vb, vc, vd] = both_batched(x);
    expect_equal(a, va, "over the inner name", 1e-6);
    expect_equal(b, vb, "over the outer name", 1e-6);
    expect_equal(c, vc, "over both", 1e-6);
    expect_equal(d, vd, "index");
    EXPECT_EQ(a.sharding(), NamedSharding(make_mesh({n, m}, {"out", "in"}), P("out", "in")));
    const auto mixed = pmap(vmap(f, {.axis_name = "in"}), {.axis_name = "out"});
    const auto turned = vmap(pmap(f, {.axis_name = "in"}), {.axis_name = "out"});
    const auto [ma, mb, mc, md] = mixed(x);
    const auto [ta, tb, tc, td] = turned(x);
    expect_equal(ma, va, "pmap of vmap", 1e-6);
    expect_equal(mb, vb, "pmap of vmap, outer", 1e-6);
    expect_equal(mc, vc, "pmap of vmap, both", 1e-6);
    expect_equal(md, vd, "pmap of vmap, index");
    expect_equal(ta, va, "vmap of pmap", 1e-6);
    expect_equal(tb, vb, "vmap of pmap, outer", 1e-6);
    expect_equal(tc, vc, "vmap of pmap, both", 1e-6);
    expect_equal(td, vd, "vmap of pmap, index");
  }
}

TEST(Pmap, siblings_of_different_sizes_inside) {
  const int p = device_count();
  if (p < 4) return;
  const Array x = data({2, 2}), y = data({2, 1, 3}, 2);
  const auto twice = pmap([](const Array& a) { return a * 2; });
  const auto [a, b] = pmap([&](const Array& a, const Array& b) {
    return std::pair{twice(a), twice(b)};
  })(x, y);
  expect_equal(a, x * 2, "size of the axis");
  expect_equal(b, y * 2, "another size");
}

TEST(Pmap, donated_arguments_are_gone_and_the_others_stay) {
  const int n = device_count();
  Array x = device_put(data({n, 2}), make_mesh({n}, {"i"}), P("i")), y = data({n, 2}, 2);
  const Array wanted = x + y;
  eval(wanted, y);
  const Array z = pmap([](const Array& a, const Array& b) { return a + b; }, {.donate_argnums = {0}})(x, y);
  EXPECT_TRUE(x.is_deleted());
  EXPECT_FALSE(y.is_deleted());
  expect_equal(z, wanted, "sum");
}

TEST(Pmap, under_jit_and_grad) {
  const int n = device_count();
  const Array x = data({n, 3}), w = data({3}, 2);
  const auto loss = pmap([](const Array& a, const Array& w) { return pmean(square(sum(a * w)), "i"); },
                         {.axis_name = "i", .in_axes = {0, None}});
  const auto plain = [&](const Array& w) { return mean(square(sum(x * w, 1))); };
  expect_equal(loss(x, w), full({n}, item<float>(plain(w))), "value", 1e-6);
  expect_equal(jit([&](const Array& w) { return loss(x, w); })(w), full({n}, item<float>(plain(w))),
               "under jit", 1e-6);
  expect_equal(grad([&](const Array& w) { return mean(loss(x, w)); })(w), grad(plain)(w), "gradient", 1e-5);
}

TEST(PmapErrors, name_sizes_and_devices) {
  const int p = device_count();
  const auto keep = [](const Array& a) { return a; };
  expect_error<ShardingError>([&] { pmap(keep)(data({p + 1})); },
                              {"pmap", std::to_string(p + 1), "devices", "vmap"});
  expect_error<ShardingError>(
      [&] {
        pmap(pmap(keep))(data({p, p + 1}));
      },
      {"nested", "[" + std::to_string(p) + "," + std::to_string(p + 1) + "]"});
  expect_error<ArgumentError>(
      [&] { pmap([](const Array& a, const Array& b) { return a + b; })(data({1}), data({2})); },
      {"size 1", "size 2"});
  expect_error<ArgumentError>(
      [&] {
        pmap(keep, {.out_axes = None})(data({p, 2}));
      },
      {"result 0", "out_axes"});
  expect_error<AxisNameError>(
      [&] { pmap([](const Array& a) { return psum(a, "j"); }, {.axis_name = "i"})(data({p})); },
      {"'j'", "'i' (size " + std::to_string(p)});
  expect_error<ArgumentError>([&] { pmap(keep, {.donate_argnums = {3}})(data({p})); },
                              {"donate_argnums", "3"});
}

}  // namespace
