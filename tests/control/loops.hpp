// Loops that several tests of this folder run, inside a trace and outside, where they are C++ loops; and
// comparisons of their results.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>
#include <tessera/transforms.hpp>

#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "support/operands.hpp"

namespace tessera::test {

using testing::HasSubstr;
using testing::Not;

inline Mesh line() { return make_mesh({device_count()}, {"x"}); }
inline Array spread(Shape shape, double low = -1, double high = 1, unsigned seed = 3) {
  return values_of({{std::move(shape), low, high}}, seed)[0];
}
inline void expect_close(const Array& a, const Array& b, const std::string& what, double tolerance = 1e-12) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  ASSERT_EQ(a.dtype(), b.dtype()) << what;
  const auto x = to_vector<double>(a), y = to_vector<double>(b);
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(x[i], y[i], tolerance * std::max(1.0, std::abs(y[i]))) << what << " [" << i << "]";
}
// The layouts in which a jitted function's array argument is tested.
inline std::vector<Array> layouts_of(const Array& x) {
  std::vector<Array> all{x, device_put(x, line(), P())};
  for (int d = 0; d < x.ndim(); ++d) {
    std::vector<DimSpec> dims(x.ndim(), DimSpec(None));
    dims[d] = DimSpec("x");
    all.push_back(device_put(x, NamedSharding(line(), PartitionSpec(dims))));
  }
  return all;
}

inline constexpr auto relax = [](const Array& x) {
  return fori_loop(
      0, 20, [](const Array& i, const Array& v) { return v * 0.5 + sin(v) / (i + 1.0); }, x);
};
inline constexpr auto run_recurrence = [](const Array& w, const Array& h0, const Array& xs) {
  return scan(
      [&](const Array& h, const Array& x) {
        const Array next = tanh(matmul(w, h) + x);
        return std::pair{next, next * x};
      },
      h0, xs);
};
// Grows x to a given size: the number of steps depends on the values.
inline constexpr auto grow = [](const Array& x, const Array& y) {
  return while_loop([](const Array& v) { return sum(v * v) < 1000.0; },
                    [&](const Array& v) { return v * 1.5 + y; }, x);
};

// Compares with central differences in a random direction, for every layout, in backward and forward mode.
template <class F> void expect_gradient(const F& f, const Array& x, const char* what) {
  std::mt19937 random(5);
  const Array t = random_like(x, random);
  const double h = 1e-5;
  const Array quotient = (f(x + h * t) - f(x - h * t)) / (2 * h);
  for (const auto& placed : layouts_of(x)) {
    const Array g = jit(grad(f))(placed);
    expect_close(sum(g * t), quotient, what, 1e-7);
    if (placed.is_committed()) {
      EXPECT_EQ(g.sharding(), placed.sharding()) << what;
    }
    expect_close(jit([&](const Array& a, const Array& da) {
                   return jvp(f, std::tuple(a), std::tuple(da)).second;
                 })(placed, t),
                 quotient, what, 1e-7);
  }
}

}  // namespace tessera::test
