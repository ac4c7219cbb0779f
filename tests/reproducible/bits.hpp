// Values to the last bit, and layouts in which they must not differ.
#pragma once
#include <tessera/ops/reproducible.hpp>

#include <cstring>
#include <string>
#include <vector>

#include "support/layouts.hpp"

namespace tessera::test {

// The bytes of all elements. Floats of every width are converted to float64, which is exact.
inline std::string bits_of(const Array& x) {
  const auto text = [](const auto& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
  };
  if (!is_inexact(x.dtype())) return text(to_vector<std::int64_t>(x));
  if (is_complex(x.dtype())) return text(to_vector<std::complex<double>>(x));
  return text(to_vector<double>(x));
}

inline std::string bits_of(const std::vector<Array>& xs) {
  std::string all;
  for (const auto& x : xs) all += bits_of(x);
  return all;
}

// How many numbers of two results differ, for a failure's text.
inline std::string differences(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return std::to_string(a.size()) + " and " + std::to_string(b.size()) + " bytes";
  std::size_t count = 0, first = a.size();
  for (std::size_t i = 0; i + 8 <= a.size(); i += 8)
    if (std::memcmp(a.data() + i, b.data() + i, 8) != 0) ++count, first = std::min(first, i / 8);
  double x = 0, y = 0;
  if (count > 0) std::memcpy(&x, a.data() + first * 8, 8), std::memcpy(&y, b.data() + first * 8, 8);
  std::ostringstream text;
  text.precision(17);
  text << count << " of " << a.size() / 8 << " numbers differ, number " << first << " is " << x << " and "
       << y;
  return text.str();
}
#define EXPECT_SAME_BITS(a, b, what)                                                \
  do {                                                                              \
    const std::string bits_a = (a), bits_b = (b);                                   \
    EXPECT_TRUE(bits_a == bits_b) << (what) << ": " << differences(bits_a, bits_b); \
  } while (false)

// Numbers between -1 and 1 whose sums round.
inline Array random_array(const Shape& shape, Dtype dtype, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> values(static_cast<std::size_t>(shape.elements()));
  for (auto& v : values)
    v = std::ldexp(static_cast<double>(random()) - 2147483648.0, -31 - static_cast<int>(random() % 12));
  Array x = array(HostArray(values, shape));
  if (is_complex(dtype)) {
    for (auto& v : values) v = std::ldexp(static_cast<double>(random()) - 2147483648.0, -31);
    x = astype(x, complex128) +
        astype(array(HostArray(values, shape)), complex128) * std::complex<double>(0, 1);
  }
  return astype(x, dtype);
}

}  // namespace tessera::test
