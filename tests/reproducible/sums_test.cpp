// Sums and products of a ReproducibleScope: large, uneven, empty, of every floating dtype, over any dims.
#include <gtest/gtest.h>

#include <tessera/nn.hpp>
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>
#include <tessera/transforms.hpp>

#include "reproducible/bits.hpp"

namespace tessera::test {
namespace {

using F = std::function<Array(const Array&)>;

void expect_layout_free(const F& f, const Array& x, const std::string& what, int rounds = 6) {
  const ReproducibleScope scope;
  const auto expected = bits_of(f(x));
  std::mt19937 random(5);
  for (int round = 0; round < rounds; ++round) {
    const Array placed = device_put(x, random_sharding(random, random_mesh(random), x.ndim()));
    EXPECT_SAME_BITS(bits_of(f(placed)), expected,
                     what + " of " + to_string(x.shape()) + " " + text_of(placed.sharding()));
  }
}

// A chain's results are summed while they are in the cache, in blocks.
TEST(Sums, of_a_chain_are_those_of_its_stored_result) {
  std::mt19937 random(7);
  const std::vector<Shape> large{{300001},   {3, 100003},   {100003, 3},
                                 {70, 5000}, {7, 900, 133}, {2, 2, 1100, 70}};
  for (const Shape& shape : large)
    for (const Dtype dtype : {float32, complex128}) {
      const Array x = astype(random::normal(random::key(3), shape), dtype);
      const auto chain = [](const Array& a) { return a * a * 0.5f + a; };
      for (int d = 0; d < shape.ndim(); ++d) {
        const auto expected = [&] {
          const ReproducibleScope scope;
          const Array stored = chain(x);
          eval(stored);
          return bits_of(sum(stored, {d}));
        }();
        for (int round = 0; round < 3; ++round) {
          const Array placed = device_put(x, random_sharding(random, random_mesh(random), x.ndim()));
          const ReproducibleScope scope;
          EXPECT_SAME_BITS(
              bits_of(sum(chain(placed), {d})), expected,
              to_string(shape) + " along " + std::to_string(d) + " " + text_of(placed.sharding()));
        }
      }
    }
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all{
      {1},      {2},        {7},         {1000},     {4099},     {3, 5}, {64, 64}, {1001, 3}, {3, 1001},
      {17, 33}, {5, 7, 11}, {2, 3, 301}, {40, 1, 9}, {257, 300}, {0, 4}, {4, 0},   {100000},  {6, 1, 1, 500}};
  return all;
}

TEST(ReproducibleSums, have_the_same_bits_over_any_dims) {
  for (const auto& shape : shapes())
    for (const Dtype dtype : {float32, float64, complex64, float16, bfloat16, complex128}) {
      const Array x = random_array(shape, dtype, 3);
      expect_layout_free([](const Array& a) { return sum(a); }, x, "sum", 3);
      for (int d = 0; d < x.ndim(); ++d) {
        expect_layout_free([&](const Array& a) { return sum(a, d, true); }, x,
                           "sum over " + std::to_string(d), 2);
        if (shape.elements() <= 5000 && !is_half(dtype))
          expect_layout_free([&](const Array& a) { return prod(a * 2, d); }, x,
                             "prod over " + std::to_string(d), 2);
      }
    }
}

TEST(ReproducibleSums, carry_everything_made_of_them) {
  for (const Shape& shape : {Shape{1000}, Shape{33, 70}, Shape{5, 7, 11}}) {
    const Array x = random_array(shape, float32, 4);
    const int last = x.ndim() - 1;
    expect_layout_free([](const Array& a) { return mean(a); }, x, "mean");
    expect_layout_free([](const Array& a) { return var(a, 0); }, x, "var");
    expect_layout_free([&](const Array& a) { return tessera::std(a, last); }, x, "std");
    expect_layout_free([](const Array& a) { return logsumexp(a, 0); }, x, "logsumexp");
    expect_layout_free([](const Array& a) { return softmax(a, 0); }, x, "softmax");
    expect_layout_free([&](const Array& a) { return log_softmax(a, last); }, x, "log_softmax");
    for (int d = 0; d <= last; ++d) {
      expect_layout_free([&](const Array& a) { return cumsum(a, d); }, x, "cumsum");
      expect_layout_free([&](const Array& a) { return cumsum(a, d, {.reverse = true}); }, x,
                         "cumsum backwards");
      expect_layout_free([&](const Array& a) { return cumprod(a + 1, d); }, x, "cumprod");
    }
    expect_layout_free([](const Array& a) { return max(where(a > 0.9, a, a * 0)); }, x,
                       "max of zeros of two signs");
  }
}

TEST(ReproducibleSums, differ_without_the_scope) {  // or the tests above show nothing
  if (device_count() < 3) GTEST_SKIP() << "on two ranks halves may agree";
  const Array x = random_array(Shape{100000}, float32, 3);
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  EXPECT_NE(bits_of(sum(device_put(x, NamedSharding(mesh, P("x"))))), bits_of(sum(x)));
}

TEST(ReproducibleSums, send_nodes_and_no_operand) {
  if (device_count() == 1) GTEST_SKIP();
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array x = device_put(random_array(Shape{100001}, float32, 3), NamedSharding(mesh, P("x")));
  const ReproducibleScope scope;
  const auto text = program_of(sum(x));
  EXPECT_NE(text.find("tree_nodes"), std::string::npos) << text;
  EXPECT_EQ(text.find("all-reduce"), std::string::npos) << text;
}

Array product(const Array& a, const Array& b) { return matmul(a, b); }

TEST(ReproducibleProducts, have_the_same_bits_wherever_operands_lie) {
  struct Case {
    std::int64_t m, k, n;
  };
  for (const auto& [m, k, n] :
       {Case{1, 1, 1}, Case{3, 5, 2}, Case{17, 100, 9}, Case{64, 64, 64}, Case{130, 1000, 70},
        Case{1, 700, 50}, Case{300, 401, 1}, Case{5, 3000, 4}, Case{200, 385, 49}})
    for (const Dtype dtype : {float32, float64, complex64, bfloat16}) {
      if (is_complex(dtype) && m * k * n > 100000) continue;
      const Array a = random_array(Shape{m, k}, dtype, 1), b = random_array(Shape{k, n}, dtype, 2);
      const ReproducibleScope scope;
      const auto expected = bits_of(product(a, b)), turned = bits_of(product(transpose(b), transpose(a)));
      std::mt19937 random(9);
      for (int round = 0; round < 4; ++round) {
        const Mesh mesh = random_mesh(random);
        const Array pa = device_put(a, random_sharding(random, mesh, 2)),
                    pb = device_put(b, random_sharding(random, mesh, 2));
        const auto what = std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n) + " " +
                          name(dtype) + " " + text_of(pa.sharding()) + " " + text_of(pb.sharding());
        EXPECT_SAME_BITS(bits_of(product(pa, pb)), expected, what);
        EXPECT_SAME_BITS(bits_of(product(transpose(pb), transpose(pa))), turned, what + " transposed");
        EXPECT_SAME_BITS(bits_of(jit([](const Array& u, const Array& v) { return product(u, v); })(pa, pb)),
                         expected, what + " in jit");
      }
    }
}

TEST(ReproducibleProducts, leave_the_result_where_it_lies_without) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array a = device_put(random_array(Shape{40, 60}, float32, 1), NamedSharding(mesh, P(None, "x"))),
              b = device_put(random_array(Shape{60, 50}, float32, 2), NamedSharding(mesh, P("x", None)));
  const Array without = matmul(a, b);
  const ReproducibleScope scope;
  const Array with = matmul(a, b);
  eval(std::vector<Array>{without, with});
  EXPECT_TRUE(with.sharding().is_equivalent_to(without.sharding(), 2)) << text_of(with.sharding());
}

TEST(ReproducibleProducts, carry_einsum_attention_and_convolution) {
  std::mt19937 random(3);
  const Array q = random_array(Shape{2, 12, 4, 8}, float32, 1),
              k = random_array(Shape{2, 24, 2, 8}, float32, 2);
  const Array image = random_array(Shape{4, 6, 13, 11}, float32, 3),
              taps = random_array(Shape{8, 3, 3, 3}, float32, 4);
  const auto attend = [](const Array& a, const Array& b) { return nn::dot_product_attention(a, b, b); };
  const auto convolve = [](const Array& a, const Array& b) {
    return conv(a, b, {.strides = {1, 1}, .padding = {{1, 1}, {1, 1}}, .groups = 2});
  };
  const auto three = [](const Array& a, const Array& b) { return einsum("bqhf,bkgf,bkgf->bqh", a, b, b); };
  using G = std::function<Array(const Array&, const Array&)>;
  for (const auto& [what, f, a, b] : {std::tuple<std::string, G, Array, Array>{"attention", attend, q, k},
                                      {"einsum", three, q, k},
                                      {"conv", convolve, image, taps}}) {
    const G in_scope = [&f = f](const Array& u, const Array& v) {
      const ReproducibleScope scope;
      return f(u, v);
    };
    const auto slopes_of = [&](const Array& u, const Array& v) {
      const auto [out, pullback] =
          vjp([&](const std::vector<Array>& x) { return std::vector<Array>{in_scope(x[0], x[1])}; },
              std::vector<Array>{u, v});
      return std::get<0>(pullback(std::vector<Array>{ones_like(out[0])}));
    };
    const auto expected = bits_of(in_scope(a, b)), slopes = bits_of(slopes_of(a, b));
    for (int round = 0; round < 5; ++round) {
      const Mesh mesh = random_mesh(random);
      const Array pa = device_put(a, random_sharding(random, mesh, a.ndim())),
                  pb = device_put(b, random_sharding(random, mesh, b.ndim()));
      const auto layouts = what + " " + text_of(pa.sharding()) + " " + text_of(pb.sharding());
      EXPECT_SAME_BITS(bits_of(in_scope(pa, pb)), expected, layouts);
      EXPECT_SAME_BITS(bits_of(slopes_of(pa, pb)), slopes, layouts + " backwards");
    }
  }
}

}  // namespace
}  // namespace tessera::test
