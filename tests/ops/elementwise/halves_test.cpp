// bfloat16 and float16 in ops: computed in float32, rounded once, sent as two bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/tessera.hpp>

#include <cmath>
#include <numeric>

#include "support/errors.hpp"

namespace tessera::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

float rounded(double x, Dtype dtype) {
  return dtype == bfloat16 ? float{bfloat16_t(x)} : float{float16_t(x)};
}
Mesh row() { return make_mesh({device_count()}, {"x"}); }
// Numbers between -2 and 2 that the dtype can represent.
Array values(Shape shape, Dtype dtype, int seed = 1) {
  std::vector<float> v;
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    v.push_back(rounded(static_cast<double>((i * 7919 + seed * 104729) % 4001) / 1000 - 2, dtype));
  return astype(array(v, std::move(shape)), dtype);
}

class Halves : public testing::TestWithParam<Dtype> {};
INSTANTIATE_TEST_SUITE_P(, Halves, testing::Values(bfloat16, float16),
                         [](const auto& info) { return name(info.param); });

TEST_P(Halves, are_made_read_and_printed) {
  const Dtype dtype = GetParam();
  const Array x = array({1.0f, 0.1f, -2.5f});
  const Array y = astype(x, dtype);
  EXPECT_EQ(y.dtype(), dtype);
  EXPECT_EQ(y.nbytes(), 6);
  EXPECT_THAT(to_vector<float>(y), ElementsAre(1.0f, rounded(0.1f, dtype), -2.5f));
  EXPECT_EQ(to_string(y), "[ 1.   0.1 -2.5]");
  EXPECT_EQ(to_string(index(y, {IndexPart(1)})), "0.1");
  EXPECT_EQ(item<double>(full({}, 0.1, dtype)), rounded(0.1, dtype));
  EXPECT_THAT(to_vector<float>(arange(3, dtype)), ElementsAre(0.0f, 1.0f, 2.0f));
  EXPECT_EQ(item<float>(sum(eye(3, dtype))), 3.0f);
  EXPECT_EQ(dtype_from_name(name(dtype)), dtype);
  EXPECT_EQ(dtype_from_name(short_name(dtype)), dtype);
}

TEST(HalfTypes, are_elements_of_host_arrays_and_blocks) {
  const std::vector<bfloat16_t> v{bfloat16_t(1.5), bfloat16_t(-3)};
  const Array x = array(HostArray(v, Shape{2}));
  EXPECT_EQ(x.dtype(), bfloat16);
  EXPECT_EQ(float{to_vector<bfloat16_t>(x)[1]}, -3.0f);
  EXPECT_EQ(float{local<bfloat16_t>(x)[0]}, 1.5f);
  EXPECT_EQ(float{item<float16_t>(sum(x))}, -1.5f);
}

TEST_P(Halves, every_operation_rounds_once) {
  const Dtype dtype = GetParam();
  const Array a = values({5, 7}, dtype, 1), b = values({5, 7}, dtype, 2);
  const auto u = to_vector<float>(a), v = to_vector<float>(b);
  const auto check = [&](const Array& got, auto&& f) {
    EXPECT_EQ(got.dtype(), dtype);
    const auto g = to_vector<float>(got);
    for (std::size_t i = 0; i < g.size(); ++i) ASSERT_EQ(g[i], rounded(f(u[i], v[i]), dtype)) << i;
  };
  check(a + b, [](float x, float y) { return x + y; });
  check(a * b, [](float x, float y) { return x * y; });
  check(a - 1.25 * b, [&](float x, float y) { return x - rounded(1.25f * y, dtype); });
  check((a * b + a) / 3, [&](float x, float y) { return rounded(rounded(x * y, dtype) + x, dtype) / 3; });
  check(sqrt(abs(a)), [](float x, float) { return std::sqrt(std::fabs(x)); });
  check(where(a < b, a, b), [](float x, float y) { return x < y ? x : y; });
  EXPECT_EQ((a < b).dtype(), bool_);
  EXPECT_EQ(argmax(a, 1).dtype(), int32);
  EXPECT_EQ(item<int>(sum(astype(a == a, int32))), 35);
}

TEST_P(Halves, have_neighbours_of_their_own) {
  const Dtype dtype = GetParam();
  const double unit = dtype == bfloat16 ? 0x1p-7 : 0x1p-10, least = dtype == bfloat16 ? 0x1p-133 : 0x1p-24;
  const Array from = astype(array({1.0f, 1.0f, -1.0f, 0.0f, 0.0f, 2.0f, INFINITY}), dtype),
              to = astype(array({2.0f, 0.0f, -3.0f, 1.0f, -1.0f, 2.0f, 0.0f}), dtype);
  const double largest = item<double>(nan_to_num(astype(array({INFINITY}), dtype)));
  EXPECT_THAT(to_vector<double>(nextafter(from, to)),
              ElementsAre(1 + unit, 1 - unit / 2, -1 - unit, least, -least, 2.0, largest));
  EXPECT_EQ(largest, dtype == bfloat16 ? 0x1.fep127 : 65504.0);
}

TEST_P(Halves, meet_other_dtypes_as_in_jax) {
  const Dtype dtype = GetParam();
  const Array x = ones({2}, dtype);
  EXPECT_EQ((x + 1).dtype(), dtype);
  EXPECT_EQ((x * 2.5).dtype(), dtype);
  EXPECT_EQ((x + std::complex<double>(0, 1)).dtype(), complex64);
  EXPECT_EQ((x + ones({2}, int64)).dtype(), dtype);
  EXPECT_EQ((x + ones({2}, float32)).dtype(), float32);
  EXPECT_EQ((x + ones({2}, float64)).dtype(), float64);
  EXPECT_EQ((ones({2}, bfloat16) + ones({2}, float16)).dtype(), float32);
  // The number is rounded before use, as an array of the dtype would be.
  EXPECT_EQ(item<float>(sum(x * 0.1)), 2 * rounded(0.1, dtype));
}

TEST_P(Halves, sums_are_made_in_float_32) {
  const Dtype dtype = GetParam();
  const std::int64_t n = 10'001;
  const Array x = device_put(ones({n}, dtype), NamedSharding(row(), P("x")));
  EXPECT_EQ(item<float>(sum(x)), rounded(static_cast<double>(n), dtype));
  EXPECT_EQ(item<float>(mean(x * 30000.0)), rounded(30000, dtype));
  EXPECT_EQ(item<float>(var(x * 300.0)), 0.0f);
  EXPECT_EQ(item<float>(linalg::norm(full({16}, 1000, dtype))), rounded(4000, dtype));
  EXPECT_EQ(item<float>(max(values({n}, dtype))), 2.0f);
  const auto c = to_vector<float>(cumsum(x, 0));
  for (std::int64_t i = 0; i < n; i += 97) ASSERT_EQ(c[i], rounded(static_cast<double>(i + 1), dtype));
  const auto s = to_vector<float>(softmax(values({3, 50}, dtype), -1));
  EXPECT_NEAR(std::accumulate(s.begin(), s.end(), 0.0), 3.0, 0.02);
}

TEST_P(Halves, products_add_up_in_float_32) {
  const Dtype dtype = GetParam();
  const auto mesh = row();
  for (const std::int64_t k : {0, 1, 13, 300}) {
    const Array a = values({11, k}, dtype, 1), b = values({k, 5}, dtype, 2);
    const auto expected = to_vector<float>(matmul(astype(a, float32), astype(b, float32)));
    for (const auto& [left, right] :
         {std::pair(P(), P()), std::pair(P("x"), P(None, "x")), std::pair(P(None, "x"), P("x")),
          std::pair(P(None, "x"), P(None, "x"))}) {
      const Array u = device_put(a, NamedSharding(mesh, left)), v = device_put(b, NamedSharding(mesh, right));
      const Array wide = matmul(u, v, {.preferred_element_type = float32}), c = matmul(u, v);
      EXPECT_EQ(c.dtype(), dtype);
      EXPECT_EQ(wide.dtype(), float32);
      const auto w = to_vector<float>(wide), g = to_vector<float>(c);
      for (std::size_t i = 0; i < w.size(); ++i) {
        ASSERT_NEAR(w[i], expected[i], 1e-6 * static_cast<double>(k + 1) * 4);
        ASSERT_EQ(g[i], rounded(w[i], dtype));
      }
    }
  }
  const Array a = device_put(values({23, 17}, dtype, 1), NamedSharding(mesh, P("x"))),
              b = device_put(values({17, 9}, dtype, 2), NamedSharding(mesh, P("x")));
  for (const auto algorithm : {ProductAlgorithm::whole, ProductAlgorithm::inner_panels,
                               ProductAlgorithm::row_panels, ProductAlgorithm::column_panels})
    EXPECT_TRUE(item<bool>(allclose(matmul(a, b, {.algorithm = algorithm}), matmul(a, b), 0.01, 0.01)));
  EXPECT_EQ(matmul(ones({2, 2}, int8), ones({2, 2}, int8), {.preferred_element_type = int32}).dtype(), int32);
  EXPECT_EQ(item<int>(sum(
                matmul(full({1, 4}, 100, int8), full({4, 1}, 100, int8), {.preferred_element_type = int32}))),
            40000);
}

// Two operands in different layouts: half of the bytes of float32 are sent.
TEST_P(Halves, travel_as_two_bytes) {
  const auto mesh = row();
  const std::int64_t n = 64;
  const auto bytes = [&](Dtype dtype) {
    const Array a = device_put(values({n, n}, dtype), NamedSharding(mesh, P("x"))),
                b = device_put(values({n, n}, dtype), NamedSharding(mesh, P("x")));
    eval(a, b);
    const debug::CommStats stats;
    eval(with_sharding_constraint(b, NamedSharding(mesh, P())), exp(b)(slice(), slice(1, None)));
    eval(matmul(a, b), concatenate({a, b}, 0), b.T() + a);
    return stats.bytes();
  };
  EXPECT_EQ(2 * bytes(GetParam()), bytes(float32));
}

TEST_P(Halves, have_gradients_of_their_dtype) {
  const Dtype dtype = GetParam();
  const Array w = values({6, 3}, dtype),
              x = device_put(values({12, 6}, dtype, 3), NamedSharding(row(), P("x")));
  const auto loss = [&](const Array& w) { return mean(square(tanh(matmul(x, w)))); };
  const auto [value, g] = value_and_grad(loss)(w);
  EXPECT_EQ(value.dtype(), dtype);
  EXPECT_EQ(g.dtype(), dtype);
  const auto wide = [&](const Array& w) { return mean(square(tanh(matmul(astype(x, float32), w)))); };
  const auto expected = to_vector<float>(grad(wide)(astype(w, float32))), got = to_vector<float>(g);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 0.02);
  EXPECT_EQ(to_vector<float>(jit(grad(loss))(w)), got);
}

TEST_P(Halves, go_through_transformations) {
  const Dtype dtype = GetParam();
  const Array x = values({5, 4}, dtype);
  const auto f = [](const Array& row) { return sum(row * row) + row(0); };
  const Array mapped = vmap(f)(x);
  EXPECT_EQ(mapped.dtype(), dtype);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(item<float>(mapped(i)), item<float>(f(x(i))));
  const Array looped = fori_loop(
      0, 5, [](const Array&, const Array& c) { return c * 1.5 + 0.25; }, x);
  EXPECT_EQ(looped.dtype(), dtype);
  Array by_hand = x;
  for (int i = 0; i < 5; ++i) by_hand = by_hand * 1.5 + 0.25;
  EXPECT_EQ(to_vector<float>(looped), to_vector<float>(by_hand));
  const auto [y, t] = jvp([](const Array& v) { return v * v; }, std::tuple(x), std::tuple(ones_like(x)));
  EXPECT_EQ(t.dtype(), dtype);
  EXPECT_EQ(to_vector<float>(t), to_vector<float>(2 * x));
}

TEST_P(Halves, collectives_add_up_in_float_32) {
  const Dtype dtype = GetParam();
  const int p = device_count();
  const Array x = values({3 * p, 5}, dtype);
  const auto summed = shard_map([](const Array& block) { return psum(block, "x"); }, row(), {P("x")}, P());
  const Array got = summed(x);
  EXPECT_EQ(got.dtype(), dtype);
  const Array expected = astype(sum(reshape(astype(x, float32), {p, 3, 5}), 0), dtype);
  const auto g = to_vector<float>(got), e = to_vector<float>(expected);
  for (std::size_t i = 0; i < g.size(); ++i)
    EXPECT_NEAR(g[i], e[i], std::abs(e[i]) * 0x1p-7) << i;  // another order may change the last digit
  const auto extremum = shard_map([](const Array& block) { return pmax(block, "x"); }, row(), {P("x")}, P());
  EXPECT_EQ(extremum(x).dtype(), dtype);
  EXPECT_EQ(to_vector<float>(extremum(x)), to_vector<float>(max(reshape(astype(x, float32), {p, 3, 5}), 0)));
  const auto gathered = shard_map([](const Array& block) { return all_gather(block, "x", {.tiled = true}); },
                                  row(), {P("x")}, P(), {.check_vma = false});
  EXPECT_EQ(to_vector<float>(gathered(x)), to_vector<float>(x));
}

TEST_P(Halves, are_refused_by_factorizations) {
  const Array a = eye(3, GetParam());
  expect_error<DtypeError>([&] { (void)linalg::solve(a, ones({3}, GetParam())); },
                           {"solve at", name(GetParam()) + " has too few digits", "astype(x, float32)"});
  EXPECT_THROW(linalg::cholesky(a), DtypeError);
  EXPECT_THROW(linalg::qr(a), DtypeError);
  EXPECT_THROW(linalg::svd(a), DtypeError);
}

}  // namespace
}  // namespace tessera::test
