#include <tessera/ops/window.hpp>

#include <tessera/debug.hpp>

#include "ops/numeric/operands.hpp"

namespace tessera::test {
namespace {

// ---- reference implementations in plain loops ----
Array pooled(const Array& x, const std::string& kind, int height, int width, int step, int around) {
  const auto values = to_vector<double>(x);
  const auto rows = x.shape()[0], columns = x.shape()[1];
  const auto out = [&](std::int64_t n, int w) { return (n + 2 * around - w) / step + 1; };
  return make({out(rows, height), out(columns, width)}, float64, [&](const Position& at) {
    double r = kind == "sum" ? 0 : kind == "prod" ? 1 : kind == "max" ? -INFINITY : INFINITY;
    for (int a = 0; a < height; ++a)
      for (int b = 0; b < width; ++b) {
        const auto i = at[0] * step + a - around, j = at[1] * step + b - around;
        if (i < 0 || j < 0 || i >= rows || j >= columns) continue;
        const double v = values[static_cast<std::size_t>(i * columns + j)];
        r = kind == "sum" ? r + v : kind == "prod" ? r * v : kind == "max" ? std::max(r, v) : std::min(r, v);
      }
    return r;
  });
}

void expect_on_every_sharding(const Array& x, const Array& expected,
                              const std::function<Array(const Array&)>& f) {
  std::mt19937 random(17);
  const auto values = to_vector<double>(expected);
  for (int round = 0; round < 4; ++round) {
    const Sharding s = random_sharding(random, random_mesh(random), x.ndim());
    const Array y = f(round == 0 ? x : device_put(x, s));
    ASSERT_EQ(y.shape(), expected.shape());
    const auto found = to_vector<double>(y);
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(found[i], values[i], 1e-12 * (1 + std::abs(values[i]))) << i << " " << text_of(s);
  }
}

TEST(ReduceWindow, of_every_kind_and_size) {
  const Array u = operands().u;
  for (const std::string kind : {"sum", "max", "min", "prod"})
    for (const auto& [h, w, step, around] :
         {std::array{2, 2, 1, 0}, {3, 5, 1, 0}, {3, 2, 2, 1}, {7, 1, 1, 0}, {6, 3, 3, 2}})
      expect_on_every_sharding(
          u, pooled(u, kind, h, w, step, around),
          [&, h = h, w = w, step = step, around = around](const Array& x) {
            return reduce_window(x, kind, {h, w},
                                 {.strides = {step, step}, .padding = {{around, around}, {around, around}}});
          });
  EXPECT_EQ(to_vector<int>(reduce_window(array({3, -7, 2}), "max", {2}, {.padding = {{1, 1}}})),
            (std::vector<int>{3, 3, 2, 2}));
}

TEST(ReduceWindow, refuses_what_does_not_fit) {
  EXPECT_THAT(error_of<ShapeError>([] { reduce_window(ones({3}), "sum", {4}); }),
              testing::HasSubstr("a window of 4 does not fit"));
  EXPECT_THROW(reduce_window(ones({3}), "mean", {2}), ArgumentError);
  EXPECT_THROW(reduce_window(ones({3}), "sum", {0}), ArgumentError);
  EXPECT_THROW(reduce_window(ones({3}), "sum", {1, 1}), ArgumentError);
}

TEST(ConvTranspose, is_the_transpose_of_conv) {
  const Array image = make({2, 4, 5, 6}, float64, [](const Position& at) {
    return std::sin(static_cast<double>(flat(at, {2, 4, 5, 6})));
  });
  const Array kernel = make({4, 3, 3, 2}, float64, [](const Position& at) {
    return std::cos(static_cast<double>(flat(at, {4, 3, 3, 2})));
  });
  for (const int stride : {1, 2, 3})
    for (const int around : {0, 1}) {
      // <y, conv(x)> = <conv_transpose(y), x>
      const Array up = conv_transpose(
          image, kernel, {.strides = {stride, stride}, .padding = {{around, around}, {around, 0}}});
      const Array x = make(up.shape(), float64, [&](const Position& at) {
        return std::sin(3.0 * static_cast<double>(flat(at, up.shape())));
      });
      const Array down =
          conv(x, kernel, {.strides = {stride, stride}, .padding = {{around, around}, {around, 0}}});
      ASSERT_EQ(down.shape(), image.shape()) << stride << " " << around;
      EXPECT_NEAR(item<double>(sum(down * image)), item<double>(sum(up * x)), 1e-9);
    }
  EXPECT_EQ(conv_transpose(image, kernel, {.strides = {2, 2}, .output_padding = {1, 0}}).shape(),
            (Shape{2, 3, 12, 12}));
  EXPECT_THROW(conv_transpose(ones({1, 2, 3}), ones({3, 1, 2})), ShapeError);
}

TEST(Shifted, continues_the_array_in_every_way) {
  const Array x = array({1, 2, 3, 4});
  const auto line = [&](int by, Boundary boundary) { return to_vector<int>(shifted(x, by, 0, boundary, 9)); };
  using V = std::vector<int>;
  EXPECT_EQ(line(1, Boundary::wrap), (V{2, 3, 4, 1}));
  EXPECT_EQ(line(-1, Boundary::wrap), (V{4, 1, 2, 3}));
  EXPECT_EQ(line(2, Boundary::constant), (V{3, 4, 9, 9}));
  EXPECT_EQ(line(-7, Boundary::constant), (V{9, 9, 9, 9}));
  EXPECT_EQ(line(2, Boundary::edge), (V{3, 4, 4, 4}));
  EXPECT_EQ(line(-2, Boundary::edge), (V{1, 1, 1, 2}));
  EXPECT_EQ(line(2, Boundary::reflect), (V{3, 4, 3, 2}));
  EXPECT_EQ(line(-2, Boundary::reflect), (V{3, 2, 1, 2}));
  EXPECT_EQ(line(2, Boundary::symmetric), (V{3, 4, 4, 3}));
  EXPECT_EQ(line(-2, Boundary::symmetric), (V{2, 1, 1, 2}));
  EXPECT_THROW(shifted(x, 4, 0, Boundary::reflect), ShapeError);
}

TEST(Stencil, of_two_split_axes_as_a_plain_loop) {
  const Array u = operands().u;
  const auto at = [](std::int64_t i, std::int64_t n) { return i < 0 ? -1 - i : i >= n ? 2 * n - 1 - i : i; };
  const auto values = to_vector<double>(u);
  const Array expected = make(u.shape(), float64, [&](const Position& p) {
    const auto read = [&](std::int64_t a, std::int64_t b) {
      return values[static_cast<std::size_t>(at(p[0] + a, 7) * 5 + at(p[1] + b, 5))];
    };
    return read(1, 0) + read(-1, 0) + 2 * read(0, 2) - read(1, -1) * read(0, 0);
  });
  expect_on_every_sharding(u, expected, [](const Array& x) {
    return stencil([](const Neighbours& n) { return n(1, 0) + n(-1, 0) + 2 * n(0, 2) - n(1, -1) * n(); }, x,
                   Boundary::symmetric);
  });
  EXPECT_THROW(stencil([](const Neighbours& n) { return n(1); }, u), ArgumentError);
}

TEST(Stencil, sends_the_halo_and_nothing_more) {
  if (device_count() == 1) GTEST_SKIP() << "there are no neighbours";
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  for (const auto boundary : {Boundary::wrap, Boundary::edge, Boundary::reflect, Boundary::constant}) {
    const Array x = block_until_ready(device_put(ones({8 * device_count(), 100}), mesh, P("x")));
    const Array y = stencil(
        [](const Neighbours& u) { return u(1, 0) + u(-1, 0) + u(0, 1) + u(0, -1) - 4 * u(); }, x, boundary);
    debug::CommStats stats;
    eval(y);
    EXPECT_LE(stats.bytes(), 2 * 100 * 4);  // a row from each neighbour
  }
}

}  // namespace
}  // namespace tessera::test
