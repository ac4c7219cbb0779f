#include "ops/numeric/operands.hpp"

namespace tessera::test {
namespace {

Array taps() { return array({1.0, -2.0, 0.5, 3.0}); }

TEST(Numeric, refuses_what_does_not_fit) {
  EXPECT_THROW(gradient(ones({1, 4}), 0), ShapeError);
  EXPECT_THROW(trapezoid(ones({4}), ones({3})), ShapeError);
  EXPECT_THROW(convolve(ones({3}), ones({2}), "around"), ArgumentError);
  EXPECT_THROW(convolve(ones({3}), ones({0})), ShapeError);
  EXPECT_THROW(cross(ones({2}), ones({3})), ShapeError);
  EXPECT_THROW(geomspace(-1, 1), ArgumentError);
  EXPECT_THROW(polyfit(ones({3}), ones({3}), 3), ArgumentError);
  EXPECT_EQ(to_vector<float>(hanning(1)), std::vector<float>{1});
}

TEST(Numeric, a_split_line_is_not_gathered) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array x = device_put(astype(arange(4000), float64), mesh, P("x"));
  for (const Array& y : {gradient(x, 0), trapezoid(x), convolve(x, taps(), "same")})
    EXPECT_THAT(program_of(y), testing::Not(testing::HasSubstr("all-gather")));
}

}  // namespace
}  // namespace tessera::test
