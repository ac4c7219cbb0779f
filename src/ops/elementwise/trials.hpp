// Sample operands in the row of an elementwise op, for its tests.
#pragma once
#include <tessera/dtype.hpp>

#include <array>
#include <vector>

namespace tessera {

// One call of the property tests: operands with values in these ranges. The condition of where is bool.
struct Trial {
  struct Range {
    double low = -2, high = 2;
  };
  Dtype dtype;
  std::array<Range, 3> operands{};
  bool of_logarithm = false;  // the operand is log(x) of x in -1 .. 1: NaN, -infinity or 0
};

// The function in a wider type, and the allowed error of float32 and float64 results.
struct Accuracy {
  double ulp = 0;          // 0: not stated
  double precise_ulp = 0;  // with TESSERA_MATH=precise
  long double (*of_one)(long double) = nullptr;
  long double (*of_two)(long double, long double) = nullptr;
};

struct Trials {
  std::vector<Trial> calls = {};
  Accuracy accuracy = {};
  bool twice_differentiable = true;

  Trials complexes(double low = -1.2, double high = 1.2) const;
  Trials within(double ulp, long double (*exact)(long double), double precise_ulp = 0) const;
  Trials within(double ulp, long double (*exact)(long double, long double), double precise_ulp = 0) const;
  // For ops whose derivative has no derivative of its own.
  Trials differentiable_once() const;
};
Trials reals(double low = -2, double high = 2);
Trials reals(Trial::Range, Trial::Range, Trial::Range);
Trials integers(int low, int high);
Trials logarithms();
Trials only_complexes(double low = -1.2, double high = 1.2);

}  // namespace tessera
