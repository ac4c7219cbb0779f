// Condition estimates: between the true value and a few times it, on every layout, without gathering the
// matrix.
#include <gmock/gmock.h>

#include <tessera/transforms.hpp>

#include "linalg/matrices.hpp"

namespace tessera::test {
namespace {

template <class T> double exact_rcond(const Matrix<T>& a) {
  return 1 / (one_norm(a) * one_norm(matrix_of<T>(linalg::inv(a.array()))));
}
template <class T> double value_of(const Array& x) { return static_cast<double>(item<real_part<T>>(x)); }

TEST(Condition, the_estimate_is_the_value_or_little_above_it) {
  for_types(AllTypes{}, [](auto zero) {
    using T = decltype(zero);
    for (const std::int64_t n : {1, 2, 5, 17, 40}) {
      const auto a = random_matrix<T>(n, n, 7);
      const double exact = exact_rcond(a);
      for (const auto& layout : layouts_of_matrices()) {
        const Array estimate = linalg::rcond(device_put(a.array(), layout));
        EXPECT_EQ(estimate.dtype(), dtype_of<real_part<T>>());
        EXPECT_EQ(estimate.shape(), Shape());
        const double got = value_of<T>(estimate);
        EXPECT_GE(got, exact * (1 - 100 * static_cast<double>(n) * eps<T>()))
            << n << " on " << text_of(layout);
        EXPECT_LE(got, exact * 3) << n << " on " << text_of(layout);
      }
    }
  });
}

TEST(Condition, a_hilbert_matrix_is_near_singular) {
  Matrix<double> hilbert(10, 10);
  for (int i = 0; i < 10; ++i)
    for (int j = 0; j < 10; ++j) hilbert(i, j) = 1.0 / (i + j + 1);
  for (const auto& layout : layouts_of_matrices()) {
    const double got = item<double>(linalg::rcond(device_put(hilbert.array(), layout)));
    EXPECT_NEAR(got, 2.828e-14, 0.01e-14);  // 1 / (|H|_1 |H^-1|_1) = 1 / 3.5353e13
  }
}

TEST(Condition, of_a_factor_costs_no_second_factorization_and_of_a_batch_is_one_number_each) {
  const auto a = random_matrix<double>(6, 6, 1), b = random_matrix<double>(6, 6, 2);
  Matrix<double> singular(6, 6);
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  for (const auto& spec : {P("x"), P(None, "x"), P(None, None, "x")}) {
    const Array all = device_put(stack({a.array(), singular.array(), b.array()}), mesh, spec);
    const auto direct = to_vector<double>(linalg::rcond(all));
    const auto of_factor =
        to_vector<double>(linalg::rcond(linalg::lu_factor(all), linalg::norm(all, 1, {-2, -1})));
    ASSERT_EQ(direct.size(), 3U);
    EXPECT_NEAR(direct[0], exact_rcond(a), exact_rcond(a) * 2);
    EXPECT_EQ(direct[1], 0);
    EXPECT_NEAR(direct[2], exact_rcond(b), exact_rcond(b) * 2);
    EXPECT_THAT(of_factor, testing::Pointwise(testing::DoubleNear(1e-12), direct));
  }
}

TEST(Condition, what_has_no_number) {
  EXPECT_EQ(item<float>(linalg::rcond(zeros({4, 4}))), 0);
  EXPECT_EQ(item<float>(linalg::rcond(zeros({0, 0}))), 1);  // LAPACK's value for an empty matrix
  EXPECT_EQ(item<double>(linalg::rcond(array({{1e-320, 0.0}, {0.0, 1e200}}))), 0);
  auto a = random_matrix<double>(5, 5, 1);
  a(2, 3) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(item<double>(linalg::rcond(a.array()))));
  EXPECT_THROW(linalg::rcond(zeros({3, 4})), ShapeError);
  EXPECT_THROW(linalg::rcond(linalg::lu_factor(zeros({2, 3, 3})), zeros({3})), ShapeError);
}

TEST(Condition, no_layout_gathers_the_matrix) {
  if (device_count() == 1) GTEST_SKIP() << "nothing is split";
  for (const auto& layout : layouts_of_matrices()) {
    const Array split = device_put(random_matrix<double>(16, 16, 1).array(), layout);
    const std::string text =
        jit([](const Array& m) { return linalg::rcond(m); }).lower(split).compile().as_text();
    EXPECT_EQ(text.find("all-gather"), std::string::npos) << text;
    EXPECT_NE(text.find("all-reduce"), std::string::npos) << text;
  }
}

TEST(Condition, has_no_derivative_and_says_why) {
  const Array a = random_matrix<double>(3, 3, 1).array();
  try {
    eval(grad([](const Array& m) { return linalg::rcond(m); })(a));
    FAIL() << "an estimate was differentiated";
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("linalg::cond(a, 1)"));
  }
}

}  // namespace
}  // namespace tessera::test
