// Factorizations of matrices that ranks hold together, in a ReproducibleScope.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/tessera.hpp>

#include "reproducible/bits.hpp"

namespace tessera::test {
namespace {

using Results = std::vector<Array>;
using F = std::function<Results(const Array& a, const Array& b)>;

struct Case {
  std::string what;
  bool needs_square;
  F f;
};

// A Hermitian positive definite matrix (for cholesky).
Array positive(const Array& a) {
  const Array square = matmul(a, conj(swapaxes(a, -1, -2)));
  return square + eye(a.shape()[a.ndim() - 2]) * 0.5;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"cholesky", true, [](const Array& a, const Array&) { return Results{linalg::cholesky(a)}; }},
      {"lu", false,
       [](const Array& a, const Array&) {
         const auto [lu, pivots] = linalg::lu_factor(a);
         return Results{lu, pivots};
       }},
      {"qr", false,
       [](const Array& a, const Array&) {
         const auto [q, r] = linalg::qr(a);
         return Results{q, r};
       }},
      {"complete qr", false,
       [](const Array& a, const Array&) {
         const auto [q, r] = linalg::qr(a, {.complete = true});
         return Results{q, r};
       }},
      {"lstsq, pinv", false,
       [](const Array& a, const Array& b) {
         const Array clear = a + eye(a.shape()[a.ndim() - 2], a.shape()[a.ndim() - 1]) * 10;
         return Results{linalg::lstsq(clear, b), linalg::pinv(clear)};
       }},
      {"solve", true, [](const Array& a, const Array& b) { return Results{linalg::solve(a, b)}; }},
      {"triangles", true,
       [](const Array& a, const Array& b) {
         return Results{linalg::triangular_solve(a, b, {.lower = true}),
                        linalg::triangular_solve(a, b, {.transpose = true})};
       }},
      {"inv, slogdet", true,
       [](const Array& a, const Array&) {
         return Results{linalg::inv(a), linalg::slogdet(a).logabsdet};
       }},
  };
  return all;
}

Results in_scope(const F& f, const Array& a, const Array& b) {
  const ReproducibleScope scope;
  return f(a, b);
}

void expect_layout_free(const Case& c, const Array& a, const Array& b, int rounds) {
  const auto whole = in_scope(c.f, a, b);
  const auto expected = bits_of(whole);
  const auto without = c.f(a, b);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const double error = item<double>(max(abs(astype(whole[i] - without[i], complex128)))),
                 size = item<double>(max(abs(astype(without[i], complex128))));
    EXPECT_LE(error, size * (real_dtype(a.dtype()) == float32 ? 2e-3 : 1e-10))
        << c.what << " of " << to_string(a.shape()) << ", result " << i;
  }
  std::mt19937 random(static_cast<unsigned>(a.shape().elements()));
  for (int round = 0; round < rounds; ++round) {
    const Mesh mesh = random_mesh(random);
    const Array pa = device_put(a, random_sharding(random, mesh, a.ndim())),
                pb = device_put(b, random_sharding(random, mesh, b.ndim()));
    EXPECT_SAME_BITS(bits_of(in_scope(c.f, pa, pb)), expected,
                     c.what + " of " + to_string(a.shape()) + " " + name(a.dtype()) + " " +
                         text_of(pa.sharding()) + " " + text_of(pb.sharding()));
  }
}

TEST(ReproducibleFactors, have_the_same_bits_wherever_the_matrix_lies) {
  for (const auto& c : cases())
    for (const Dtype dtype : {float32, float64, complex64, complex128})
      for (const auto& [m, n] : {std::pair{1, 1}, {5, 5}, {70, 70}, {150, 150}, {150, 70}, {70, 150}}) {
        if ((c.needs_square && m != n) || (is_complex(dtype) && m > 70)) continue;
        const Array x = random_array(Shape{m, n}, dtype, 1);
        expect_layout_free(c, c.needs_square ? positive(x) : x, random_array(Shape{m, 3}, dtype, 2),
                           is_complex(dtype) ? 1 : 3);
      }
}

// A rank receives panels and its share of complete columns; the matrix is complete on none.
TEST(ReproducibleFactors, send_panels_and_no_matrix) {
  if (device_count() == 1) GTEST_SKIP() << "one rank holds everything";
  const NamedSharding rows(make_mesh({device_count()}, {"x"}), P("x"));
  const Array a = device_put(positive(random_array(Shape{300, 300}, float64, 7)), rows);
  const Array b = device_put(random_array(Shape{300, 2}, float64, 8), rows);
  eval(a, b);
  for (const auto& c : cases()) {
    if (c.what == "lstsq, pinv") continue;  // a chain of products and factorizations
    for (const Array& y : in_scope(c.f, a, b)) {
      const auto text = program_of(y);
      EXPECT_THAT(text, testing::HasSubstr("broadcast")) << c.what;
      EXPECT_THAT(text, testing::Not(testing::ContainsRegex("all-gather.*300, ?300"))) << c.what << text;
    }
  }
}

TEST(ReproducibleFactors, of_batches_have_the_same_bits) {
  for (const auto& c : cases())
    for (const Shape& shape : {Shape{2, 20, 20}, Shape{9, 7, 7}, Shape{0, 4, 4}}) {
      const Array a = positive(random_array(shape, float64, 3));
      if (shape[0] > 0)
        expect_layout_free(c, a, random_array(Shape{shape[0], shape[1], 5}, float64, 4), 3);
      else
        EXPECT_EQ(in_scope(c.f, a, zeros({0, 4, 5}, float64))[0].shape()[0], 0);
    }
}

TEST(ReproducibleFactors, have_gradients_with_the_same_bits) {
  const auto loss = [](const Array& a) {
    const ReproducibleScope scope;
    const auto [q, r] = linalg::qr(a);
    return sum(linalg::solve(a, q)) + linalg::slogdet(matmul(a, transpose(a)) + eye(90)).logabsdet +
           sum(linalg::cholesky(matmul(a, transpose(a)) + eye(90))) + sum(abs(r));
  };
  const Array a = random_array(Shape{90, 90}, float64, 5) + 4 * eye(90);
  const auto expected = bits_of(grad(loss)(a));
  std::mt19937 random(6);
  for (int round = 0; round < 4; ++round) {
    const Array placed = device_put(a, random_sharding(random, random_mesh(random), 2));
    EXPECT_SAME_BITS(bits_of(grad(loss)(placed)), expected, text_of(placed.sharding()));
  }
}

TEST(ReproducibleFactors, see_nan_and_failure_alike) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const NamedSharding columns(mesh, P(None, "x"));
  const ReproducibleScope scope;
  const Array broken =
      device_put(where(eye(30) > 0, std::nan(""), random_array({30, 30}, float64, 1)), columns);
  EXPECT_TRUE(item<bool>(all(isnan(linalg::solve(broken, ones({30}, float64))))));
  EXPECT_THROW(eval(linalg::solve(device_put(zeros({30, 30}, float64), columns), ones({30}, float64))),
               LinAlgError);
  EXPECT_THROW(eval(linalg::cholesky(device_put(-eye(100, float64), columns))), LinAlgError);
}

}  // namespace
}  // namespace tessera::test
