// Operands shared by the tests of this folder.
#pragma once
#include <tessera/ops/arrange.hpp>
#include <tessera/ops/numeric.hpp>
#include <tessera/ops/sized.hpp>
#include <tessera/ops/statistics.hpp>
#include <tessera/transforms.hpp>

#include <cmath>

#include "support/layouts.hpp"

namespace tessera::test {

// All (7, 5).
struct Operands {
  Array n;  // integers with repetition
  Array x;  // the elements as floats
  Array u;  // floats, no two alike
  Array z;  // u with some NaN; the last column is all NaN
};
inline Operands operands() {
  Operands o;
  o.n = reshape(arange(35) * 11 % 17 - 8, {7, 5});
  o.x = astype(o.n, float64);
  o.u = reshape(astype(arange(35) * 13 % 37, float64) / 4.0, {7, 5});
  o.z = where((o.n % 5 == 3) | (arange(5) == 4), astype(NAN, float64), o.u);
  return o;
}

}  // namespace tessera::test
