// conv compared with plain loops: strides, padding, dilation, groups, any number of spatial dims, any
// shardings; and its traffic.
#include <tessera/ops/reproducible.hpp>

#include "support/layouts.hpp"

namespace tessera::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

double value_of(const Position& at, const Shape& shape, int seed) {
  return static_cast<double>((flat(at, shape) * 7 + seed) % 9) - 4;
}

double correlate(const Position& at, const Shape& xs, const Shape& ks, const ConvOptions& o) {
  const auto spatial = xs.size() - 2;
  const auto per_group = ks[0] / o.groups, group = at[1] / per_group;
  double total = 0;
  std::int64_t taps = 1;
  for (std::size_t d = 0; d < spatial; ++d) taps *= ks[d + 2];
  for (std::int64_t c = 0; c < ks[1]; ++c)
    for (std::int64_t t = 0; t < taps; ++t) {
      Position source{at[0], group * ks[1] + c}, tap{at[1], c};
      auto rest = t;
      std::vector<std::int64_t> k(spatial);
      for (std::size_t d = spatial; d-- > 0;) k[d] = rest % ks[d + 2], rest /= ks[d + 2];
      bool inside = true;
      for (std::size_t d = 0; d < spatial; ++d) {
        tap.push_back(k[d]);
        source.push_back(at[d + 2] * o.strides[d] + k[d] * o.dilation[d] - o.padding[d].first);
        inside &= source.back() >= 0 && source.back() < xs[d + 2];
      }
      if (inside) total += value_of(source, xs, 1) * value_of(tap, ks, 5);
    }
  return total;
}

TEST(Conv, what_loops_give_on_any_sharding) {
  std::mt19937 random(61);
  for (int round = 0; round < 50; ++round) {
    const Mesh mesh = random_mesh(random);
    const int spatial = pick(random, 0, 3);
    ConvOptions o;
    o.groups = pick(random, 1, 3);
    std::vector<std::int64_t> xs{pick(random, 1, 3), 0},
        ks{o.groups * pick(random, 1, 3), pick(random, 1, 3)}, ys{xs[0], ks[0]};
    xs[1] = ks[1] * o.groups;
    for (int d = 0; d < spatial; ++d) {
      ks.push_back(pick(random, 1, 3));
      o.strides.push_back(pick(random, 1, 3));
      o.dilation.push_back(pick(random, 1, 2));
      o.padding.push_back({pick(random, 0, 3), pick(random, 0, 3)});
      const auto reach = (ks.back() - 1) * o.dilation.back() + 1;
      xs.push_back(reach + pick(random, 0, 8));
      ys.push_back((xs.back() + o.padding.back().first + o.padding.back().second - reach) / o.strides.back() +
                   1);
    }
    const Dtype dtype = round % 3 == 0 ? int32 : round % 3 == 1 ? float64 : float32;
    Array x = make(Shape(xs), dtype, [&](const Position& at) { return value_of(at, Shape(xs), 1); });
    Array k = make(Shape(ks), dtype, [&](const Position& at) { return value_of(at, Shape(ks), 5); });
    if (random() % 6) x = device_put(x, random_sharding(random, mesh, x.ndim()));
    if (random() % 3 == 0) k = device_put(k, random_sharding(random, mesh, k.ndim()));
    const Array y = conv(x, k, o);
    expect_elements(
        y, Shape(ys), [&](const Position& at) { return correlate(at, Shape(xs), Shape(ks), o); },
        "round " + std::to_string(round) + to_string(Shape(xs)) + to_string(Shape(ks)) +
            text_of(x.sharding()) + text_of(k.sharding()) + " groups " + std::to_string(o.groups));
  }
}

TEST(Conv, a_split_spatial_dim_exchanges_its_halo_only) {
  const int n = device_count();
  const Mesh mesh = make_mesh({n}, {"x"});
  const Array x = device_put(zeros({1, 2, 8 * n, 16}), mesh, P(None, None, "x")), k = zeros({4, 2, 3, 3});
  const Array y = conv(x, k, {.padding = {{1, 1}, {1, 1}}});
  EXPECT_EQ(y.sharding(), NamedSharding(mesh, P(None, None, "x")));
  const auto text = program_of(y);
  EXPECT_THAT(text, Not(HasSubstr("all-gather")));
  // Each neighbour sends a row of 16 floats in 2 channels.
  if (n == 2) {
    EXPECT_THAT(text, HasSubstr("bytes=128"));
  }
  if (n > 2) {
    EXPECT_THAT(text, HasSubstr("bytes=256"));
  }
  const Array images = device_put(zeros({2 * n, 2, 8, 8}), mesh, P("x"));
  EXPECT_THAT(program_of(conv(images, k)), Not(HasSubstr("bytes=")));
}

// One signal or image whose blocks are much longer than their halos, so that they are read where they lie.
TEST(Conv, a_split_signal_is_read_in_place_beside_its_halo) {
  const int n = device_count();
  const Mesh mesh = make_mesh({n}, {"x"});
  std::mt19937 random(17);
  for (int round = 0; round < 24; ++round) {
    ConvOptions o;
    const int spatial = pick(random, 1, 2);
    std::vector<std::int64_t> xs{1, 1}, ks{1, 1}, ys{1, 1};
    for (int d = 0; d < spatial; ++d) {
      ks.push_back(pick(random, 1, 4));
      o.strides.push_back(pick(random, 1, 3));
      o.dilation.push_back(pick(random, 1, 2));
      o.padding.push_back({pick(random, 0, 3) * pick(random, 0, 3), pick(random, 0, 9)});
      const auto reach = (ks.back() - 1) * o.dilation.back() + 1;
      xs.push_back(d == 0 ? 150 * n + pick(random, 0, n) : reach + pick(random, 0, 5));
      ys.push_back((xs.back() + o.padding.back().first + o.padding.back().second - reach) / o.strides.back() +
                   1);
    }
    const Dtype dtype = round % 3 == 0 ? int32 : round % 3 == 1 ? float64 : float32;
    const Array x =
        device_put(make(Shape(xs), dtype, [&](const Position& at) { return value_of(at, Shape(xs), 1); }),
                   mesh, P(None, None, "x"));
    const Array k = make(Shape(ks), dtype, [&](const Position& at) { return value_of(at, Shape(ks), 5); });
    const auto expected = [&](const Position& at) { return correlate(at, Shape(xs), Shape(ks), o); };
    const auto text = "round " + std::to_string(round) + to_string(Shape(xs)) + to_string(Shape(ks));
    expect_elements(conv(x, k, o), Shape(ys), expected, text);
    const ReproducibleScope scope;
    expect_elements(conv(x, k, o), Shape(ys), expected, text + " in order");
  }
}

TEST(Conv, a_split_signal_moves_nothing_but_its_halo) {
  const int n = device_count();
  const Mesh mesh = make_mesh({n}, {"x"});
  const Array x = device_put(zeros({1, 1, 1000 * n}), mesh, P(None, None, "x")), k = zeros({1, 1, 5});
  const auto text = program_of(conv(x, k, {.padding = {{2, 2}}}));
  if (n == 1) return;
  EXPECT_THAT(text, HasSubstr(n == 2 ? "bytes=8" : "bytes=16"));
  EXPECT_THAT(text, Not(HasSubstr("f32[1,1,1002]"))) << "the block is copied beside its halo: " << text;
}

TEST(Conv, errors_show_the_shapes) {
  EXPECT_THAT(error_of<ShapeError>([] {
                conv(zeros({1, 3, 8}), zeros({2, 4, 3}));
              }),
              HasSubstr("operand (1, 3, 8), kernel (2, 4, 3), 1 groups"));
  EXPECT_THAT(error_of<ShapeError>([] {
                conv(zeros({1, 3, 8}), zeros({2, 3}));
              }),
              HasSubstr("same number of dimensions"));
  EXPECT_THAT(error_of<ShapeError>([] {
                conv(zeros({1, 1, 2}), zeros({1, 1, 3}));
              }),
              HasSubstr("does not fit into spatial dimension 0"));
  EXPECT_THAT(error_of<ArgumentError>([] {
                conv(zeros({1, 1, 8}), zeros({1, 1, 3}), {.strides = {1, 1}});
              }),
              HasSubstr("2 strides for 1 spatial dimensions"));
  EXPECT_THAT(error_of<ArgumentError>([] {
                conv(zeros({1, 1, 8}), zeros({1, 1, 3}), {.padding = {{-1, 0}}});
              }),
              HasSubstr("must not be negative"));
}

}  // namespace
}  // namespace tessera::test
