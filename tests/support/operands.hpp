// Values to call functions with, the same on every rank.
#pragma once
#include <tessera/array.hpp>

#include <random>
#include <vector>

namespace tessera::test {

// An operand: values spread over [low, high], no two of them close to each other. Integers are drawn from
// low..high.
struct OperandSample {
  Shape shape;
  double low = -2, high = 2;
  Dtype dtype = float64;
};

// Uncommitted.
std::vector<Array> values_of(const std::vector<OperandSample>&, unsigned seed);
// Values in (-1, 1) for a cotangent or tangent of x.
Array random_like(const Array& x, std::mt19937& random);

}  // namespace tessera::test
