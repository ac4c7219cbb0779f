#include <tessera/control/lax.hpp>

#include "ops/numeric/operands.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;

TEST(DynamicSlice, takes_the_part_at_a_value) {
  std::mt19937 random(2);
  const Array u = operands().u;
  for (int round = 0; round < 4; ++round) {
    const Array x = round == 0 ? u : device_put(u, random_sharding(random, random_mesh(random), 2));
    const auto f = jit([](const Array& a, const Array& i) { return dynamic_slice(a, {i, i - 2}, {3, 2}); });
    EXPECT_EQ(to_vector<double>(f(x, Array(2))), to_vector<double>(u(slice(2, 5), slice(0, 2))));
    EXPECT_EQ(to_vector<double>(f(x, Array(9))), to_vector<double>(u(slice(4, 7), slice(3, 5))))
        << "moved inside";
    const auto put = jit([](const Array& a, const Array& v, const Array& i) {
      return dynamic_update_slice(a, v, {i, i});
    });
    EXPECT_EQ(to_vector<double>(put(x, -ones({2, 3}, float64), Array(1))),
              to_vector<double>(u.at(slice(1, 3), slice(1, 4)).set(-1.0)));
  }
  EXPECT_THAT(error_of<ShapeError>([] { dynamic_slice(ones({3}), {0}, {4}); }), HasSubstr("a size of 4"));
  EXPECT_THROW(dynamic_slice(ones({3}), {0.5}, {2}), DtypeError);
  EXPECT_THROW(dynamic_slice(ones({3, 3}), {0}, {2}), ShapeError);
}

TEST(Bitcast, keeps_the_bits) {
  const Array x = device_put(array({1.0f, -2.0f, 0.5f}), make_mesh({device_count()}, {"x"}), P("x"));
  EXPECT_EQ(to_vector<std::uint32_t>(bitcast_convert_type(x, uint32)),
            (std::vector<std::uint32_t>{0x3f800000u, 0xc0000000u, 0x3f000000u}));
  const Array bytes = bitcast_convert_type(x, uint8);
  EXPECT_EQ(bytes.shape(), (Shape{3, 4}));
  EXPECT_EQ(to_vector<float>(bitcast_convert_type(bytes, float32)), (std::vector<float>{1, -2, 0.5}));
  EXPECT_THROW(bitcast_convert_type(bytes, float64), ShapeError);
  EXPECT_THROW(bitcast_convert_type(x, bool_), DtypeError);
}

TEST(Switch, runs_the_branch_of_its_number) {
  const auto branches = std::tuple{[](const Array& x) { return x + 1; },
                                   [](const Array& x) { return x * 10; }, [](const Array& x) { return -x; }};
  const auto f = [&](const Array& i, const Array& x) { return switch_(i, branches, x); };
  for (const auto& [i, expected] : {std::pair{-3, 3.0}, {0, 3.0}, {1, 20.0}, {2, -2.0}, {7, -2.0}}) {
    EXPECT_EQ(item<double>(f(Array(i), full({}, 2.0, float64))), expected);
    EXPECT_EQ(item<double>(jit(f)(array(std::vector<int>{i})(0), full({}, 2.0, float64))), expected);
  }
  EXPECT_THROW(switch_(0.5, branches, ones({})), DtypeError);
}

TEST(SequentialMap, stacks_the_results) {
  const Array u = operands().u;
  const auto f = [](const Array& row) { return sum(row * row); };
  const auto expected = to_vector<double>(sum(u * u, 1));
  EXPECT_EQ(to_vector<double>(sequential_map(f, u)), expected);
  EXPECT_EQ(to_vector<double>(jit([&](const Array& x) { return sequential_map(f, x); })(u)), expected);
}

TEST(AssociativeScan, as_a_loop) {
  std::mt19937 random(4);
  for (const int n : {0, 1, 2, 3, 8, 13}) {
    const Array x = astype(arange(n) % 5 + 1, float64);
    const Array at = n == 0 ? x : device_put(x, random_sharding(random, random_mesh(random), 1));
    EXPECT_EQ(to_vector<double>(associative_scan(multiply, at)), to_vector<double>(cumprod(x, 0))) << n;
    EXPECT_EQ(to_vector<double>(associative_scan(multiply, at, true)),
              to_vector<double>(flip(cumprod(flip(x, 0), 0), 0)))
        << n;
  }
  // y[i] = a[i] y[i-1] + b[i], as pairs (a, b)
  const Array a = array({0.5, 2.0, -1.0, 3.0, 1.0}), b = array({1.0, 0.0, 2.0, 1.0, -4.0});
  const auto combined = associative_scan(
      [](const std::pair<Array, Array>& l, const std::pair<Array, Array>& r) {
        return std::pair<Array, Array>{r.first * l.first, r.first * l.second + r.second};
      },
      std::pair{a, b});
  EXPECT_EQ(to_vector<double>(combined.second), (std::vector<double>{1, 2, 0, 1, -3}));
}

// ---- forward mode ----
Array curve(const Array& x, const Array& y) {
  return stack({sum(x * x) * y(0), x(1) * sin(y(1)), x(0) + y(0)});
}

TEST(Forward, jacobians_by_columns_are_those_by_rows) {
  const Array x = array({1.0, 2.0, 3.0}), y = array({0.5, -1.5});
  const auto [fx, fy] = jacfwd<0, 1>(curve)(x, y);
  const auto [rx, ry] = jacrev<0, 1>(curve)(x, y);
  EXPECT_EQ(fx.shape(), (Shape{3, 3}));
  EXPECT_EQ(fy.shape(), (Shape{3, 2}));
  EXPECT_TRUE(item<bool>(allclose(fx, rx, 1e-14, 1e-14)));
  EXPECT_TRUE(item<bool>(allclose(fy, ry, 1e-14, 1e-14)));
  EXPECT_TRUE(item<bool>(allclose(jacfwd<1>(curve)(x, y), ry, 1e-14, 1e-14)));
}

TEST(Forward, linearize_gives_the_derivative_of_many_tangents) {
  const Array x = array({1.0, 2.0, 3.0}), y = array({0.5, -1.5});
  const auto [value, derivative] = linearize(curve, x, y);
  EXPECT_TRUE(item<bool>(allclose(value, curve(x, y))));
  for (const double scale : {1.0, -2.5}) {
    const Array dx = x * scale, dy = y - scale;
    EXPECT_TRUE(item<bool>(
        allclose(derivative(dx, dy), jvp(curve, std::tuple{x, y}, std::tuple{dx, dy}).second, 1e-13, 1e-13)));
  }
}

TEST(Forward, custom_jvp_is_taken_in_both_modes) {
  const auto f =
      custom_jvp([](const Array& x) { return log(1 + exp(x)); },
                 [](const std::tuple<Array>& primals, const std::tuple<Array>& tangents) {
                   const Array x = std::get<0>(primals);
                   return std::pair<Array, Array>{softplus(x), 3 * sigmoid(x) * std::get<0>(tangents)};
                 });
  const Array x = array({-1.0, 0.0, 200.0});
  const auto expected = to_vector<double>(3 * sigmoid(x));
  EXPECT_EQ(to_vector<double>(grad([&](const Array& a) { return sum(f(a)); })(x)), expected);
  EXPECT_EQ(to_vector<double>(jvp(f, std::tuple{x}, std::tuple{ones_like(x)}).second), expected);
  const Array second =
      grad([&](const Array& a) { return sum(grad([&](const Array& b) { return sum(f(b)); })(a)); })(x);
  EXPECT_TRUE(item<bool>(allclose(second, 3 * sigmoid(x) * (1 - sigmoid(x)))));
}

}  // namespace
}  // namespace tessera::test
