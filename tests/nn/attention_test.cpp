// Attention compared with its definition, for all layouts of queries and keys.
#include <tessera/nn.hpp>
#include <tessera/runtime.hpp>
#include <tessera/transforms.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/compare.hpp"
#include "support/errors.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;

Mesh line() { return make_mesh({device_count()}, {"x"}); }
Array sample(Shape shape, double step) {
  const auto n = shape.elements();
  return reshape(sin(astype(arange(n), float64) * step) * 1.5, std::move(shape));
}
struct Operands {
  Array q = sample({2, 9, 4, 3}, 0.7), k = sample({2, 11, 2, 3}, 1.1), v = sample({2, 11, 2, 3}, 0.4);
};
// Computed term by term, with keys and values repeated for their groups of heads.
Array defined(const Operands& o, const std::optional<Array>& mask, bool causal) {
  const Array k = repeat(o.k, 2, 2), v = repeat(o.v, 2, 2);
  Array scores = einsum("btnh,bsnh->bnts", o.q, k) / std::sqrt(3.0);
  if (mask) scores = where(*mask, scores, -1e300);
  if (causal) scores = where(expand_dims(arange(9), 1) >= expand_dims(arange(11), 0), scores, -1e300);
  return einsum("bnts,bsnh->btnh", softmax(scores, -1), v);
}

TEST(Attention, is_its_definition_on_every_layout) {
  const Operands o;
  const Array expected = defined(o, std::nullopt, false);
  const std::vector<PartitionSpec> specs{P(), P("x"), P(None, "x"), P(None, None, "x"),
                                         P(None, None, None, "x")};
  for (const auto& of_q : specs)
    for (const auto& of_k : specs) {
      const Array q = device_put(o.q, line(), of_q), k = device_put(o.k, line(), of_k),
                  v = device_put(o.v, line(), of_k);
      expect_close(nn::dot_product_attention(q, k, v), expected);
    }
}

TEST(Attention, blocks_of_keys_change_nothing) {
  const Operands o;
  const Array mask = reshape(arange(2 * 9 * 11), {2, 1, 9, 11}) % 3 != 1;
  for (const std::int64_t block : {1, 4, 11, 50})
    expect_close(nn::dot_product_attention(o.q, o.k, o.v, {.mask = mask, .key_block = block}),
                 defined(o, mask, false));
  expect_close(nn::dot_product_attention(o.q, o.k, o.v, {.is_causal = true, .key_block = 4}),
               defined(o, std::nullopt, true));
}

TEST(Attention, gradients_of_split_sequences_are_those_of_whole_ones) {
  const Operands o;
  const auto f = [](const Array& q, const Array& k, const Array& v) {
    return sum(square(nn::dot_product_attention(q, k, v, {.is_causal = true})));
  };
  const auto place = [](const Array& x) { return device_put(x, line(), P(None, "x")); };
  const auto [gq, gk, gv] = jit(grad<0, 1, 2>(f))(place(o.q), place(o.k), place(o.v));
  const auto [eq, ek, ev] = grad<0, 1, 2>(f)(o.q, o.k, o.v);
  expect_close(gq, eq);
  expect_close(gk, ek);
  expect_close(gv, ev);
}

TEST(Attention, blocks_have_the_biass_gradient) {
  const Operands o;
  const Array bias = sample({4, 9, 11}, 0.23);
  const auto f = [&](std::int64_t block) {
    return grad([&o, block](const Array& b) {
      return sum(square(nn::dot_product_attention(o.q, o.k, o.v, {.bias = b, .key_block = block})));
    });
  };
  expect_close(f(4)(bias), f(0)(bias));
}

TEST(Attention, blocks_pass_tangents) {
  const Operands o;
  const auto tangent = [&](std::int64_t block, const PartitionSpec& spec) {
    const auto f = [block](const Array& q, const Array& k) {
      return nn::dot_product_attention(q, k, k, {.is_causal = true, .key_block = block});
    };
    const std::tuple at{device_put(o.q, line(), spec), device_put(o.k, line(), spec)};
    return jvp(f, at, std::tuple{cos(o.q), sin(o.k) * 0.5}).second;
  };
  const Array expected = tangent(0, P());
  for (const auto& spec : {P(), P(None, "x"), P("x")}) expect_close(tangent(4, spec), expected);
}

TEST(Attention, keys_split_alone_are_not_gathered) {
  const Array q = device_put(sample({1, 2, 1, 4}, 0.3), line(), P());
  const Array k = device_put(sample({1, 4096, 1, 4}, 0.7), line(), P(None, "x"));
  const auto f = jit([](const Array& a, const Array& b) { return nn::dot_product_attention(a, b, b); });
  EXPECT_LT(f.lower(q, k).compile().explanation().bytes(), 1000);
}

TEST(Attention, without_a_batch) {
  const Operands o;
  expect_close(nn::dot_product_attention(o.q(0), o.k(0), o.v(0)), defined(o, std::nullopt, false)(0));
}

TEST(Attention, errors_name_the_shapes) {
  const Operands o;
  EXPECT_THAT(error_of<ShapeError>([&] { nn::dot_product_attention(o.q, o.k, o.q); }),
              HasSubstr("(2, 9, 4, 3)"));
  EXPECT_THAT(error_of<ShapeError>([&] { nn::dot_product_attention(o.q, o.k, o.v, {.bias = ones({5})}); }),
              HasSubstr("broadcast"));
  EXPECT_THAT(error_of<DtypeError>([&] { nn::dot_product_attention(o.q, o.k, o.v, {.mask = ones({11})}); }),
              HasSubstr("must be bool"));
}

}  // namespace
}  // namespace tessera::test
