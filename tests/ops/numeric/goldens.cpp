#include "ops/numeric/goldens.hpp"

namespace tessera::test {

const std::vector<Golden>& goldens() {
  static const std::vector<Golden> all = {
#include "goldens.inc"
  };
  return all;
}

Operands operands() {
  Operands o;
  o.n = reshape(arange(35) * 11 % 17 - 8, {7, 5});
  o.x = astype(o.n, float64);
  o.u = reshape(astype(arange(35) * 13 % 37, float64) / 4.0, {7, 5});
  o.z = where((o.n % 5 == 3) | (arange(5) == 4), astype(NAN, float64), o.u);
  return o;
}

namespace {
void expect_values(const Golden& golden, const Array& y, double tolerance, const std::string& what) {
  ASSERT_EQ(y.shape(), golden.shape) << what;
  const auto values = to_vector<double>(y);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = golden.values[i];
    if (std::isfinite(expected))
      ASSERT_NEAR(values[i], expected, tolerance * (1 + std::abs(expected))) << what << " at " << i;
    else
      ASSERT_TRUE(values[i] == expected || (values[i] != values[i] && expected != expected))
          << what << " at " << i << ": " << values[i] << " and not " << expected;
  }
}
}  // namespace

void expect_as_numpy(const std::string& name, const std::function<Array(const Operands&)>& call,
                     double tolerance) {
  const auto golden =
      std::find_if(goldens().begin(), goldens().end(), [&](const Golden& g) { return g.name == name; });
  ASSERT_NE(golden, goldens().end()) << name;
  const Operands o = operands();
  expect_values(*golden, call(o), tolerance, name);
  std::mt19937 random(11);
  for (int round = 0; round < 3; ++round) {
    const Sharding s = random_sharding(random, random_mesh(random), 2);
    const auto put = [&](const Array& a) { return device_put(a, s); };
    expect_values(*golden, call({put(o.n), put(o.x), put(o.u), put(o.z)}), tolerance,
                  name + " " + text_of(s));
  }
}

}  // namespace tessera::test
