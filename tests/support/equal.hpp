// Comparisons of results with expected values.
#pragma once
#include <gtest/gtest.h>

#include <tessera/ops.hpp>

#include <cmath>
#include <string>

namespace tessera::test {

inline void expect_equal(const Array& got, const Array& wanted, const std::string& what,
                         double tolerance = 0) {
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  const auto a = to_vector<double>(got), b = to_vector<double>(wanted);
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], tolerance * (1 + std::abs(b[i]))) << what << " element " << i;
}

}  // namespace tessera::test
