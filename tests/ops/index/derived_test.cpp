// diff, meshgrid, isclose and median of special values. Usual values are tested in tests/catalogue.
#include <limits>

#include "support/layouts.hpp"

namespace tessera::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Array split(const Array& x) { return device_put(x, make_mesh({device_count()}, {"x"}), P("x")); }

TEST(Diff, of_more_differences_than_elements) { EXPECT_EQ(diff(zeros({2}), 5).size(), 0); }

TEST(Meshgrid, refuses_another_order) {
  EXPECT_THAT(error_of<ArgumentError>([] { meshgrid({arange(2)}, "yx"); }),
              HasSubstr("must be 'xy' or 'ij'"));
}

TEST(IsClose, as_num_py) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Array a = split(array({1.0, 1.0, inf, inf, nan, 0.0})),
              b = array({1.0 + 1e-6, 1.1, inf, -inf, nan, 1e-9});
  EXPECT_THAT(to_vector<bool>(isclose(a, b)), ElementsAre(true, false, true, false, false, true));
  EXPECT_THAT(to_vector<bool>(isclose(a, b, 1e-5, 1e-8, true)),
              ElementsAre(true, false, true, false, true, true));
  EXPECT_FALSE(item<bool>(allclose(a, b)));
  EXPECT_TRUE(item<bool>(allclose(split(arange(5)), arange(5))));
}

TEST(Median, of_odd_and_even_counts_and_of_nan) {
  EXPECT_EQ(item<float>(median(split(array({5.f, 1.f, 3.f})))), 3.0f);
  EXPECT_EQ(item<float>(median(split(array({4, 1, 3, 2})))), 2.5f);
  EXPECT_TRUE(std::isnan(item<float>(median(split(array({4.f, NAN, 3.f}))))));
  EXPECT_THAT(to_vector<float>(median(split(array({{1.f, 9.f}, {3.f, 7.f}, {2.f, 8.f}})), 0)),
              ElementsAre(2, 8));
  EXPECT_THAT(error_of<ShapeError>([] { median(zeros({0}), 0); }), HasSubstr("median of no elements"));
}

}  // namespace
}  // namespace tessera::test
