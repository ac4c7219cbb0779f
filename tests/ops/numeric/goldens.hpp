// Values and shapes that NumPy gave (make_goldens.py), compared on every sharding.
#pragma once
#include <tessera/ops/arrange.hpp>
#include <tessera/ops/numeric.hpp>
#include <tessera/ops/sized.hpp>
#include <tessera/ops/statistics.hpp>
#include <tessera/transforms.hpp>

#include <cmath>

#include "support/layouts.hpp"

namespace tessera::test {

struct Golden {
  const char* name;
  Shape shape;
  std::vector<double> values;
};
const std::vector<Golden>& goldens();

// The operands of make_goldens.py, all (7, 5).
struct Operands {
  Array n;  // integers with repetition
  Array x;  // they as floats
  Array u;  // floats, no two alike
  Array z;  // u with NaN, its last column nothing else
};
Operands operands();

// Compares call(operands) with what NumPy gave, uncommitted and on random shardings.
void expect_as_numpy(const std::string& name, const std::function<Array(const Operands&)>& call,
                     double tolerance = 1e-12);

}  // namespace tessera::test
