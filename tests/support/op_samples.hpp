// The table from which the laws of ops are tested: sharded = unsharded, vjp and jvp = finite differences,
// vmap = loop. Every registered op stands in it; a new op is one row more.
#pragma once
#include <tessera/array.hpp>

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace tessera::test {

// An operand: values spread over [low, high], no two of them close to each other. Integers are drawn from
// low..high.
struct OperandSample {
  Shape shape;
  double low = -2, high = 2;
  Dtype dtype = float64;
};

enum class Smooth { no, once, twice };  // which derivatives finite differences can check

struct OpSample {
  std::string name;  // "max_of_rows": a word, and unique
  std::vector<OperandSample> operands;
  std::function<std::vector<Array>(const std::vector<Array>&)> call;
  Smooth smooth = Smooth::twice;  // in its float64 and complex128 operands
  double tolerance = 1e-6;        // of derivatives, relative to the largest
  std::string file = {};          // that calls the op: "linalg.cpp"
};
const std::vector<OpSample>& op_samples();
inline std::ostream& operator<<(std::ostream& out, const OpSample& sample) { return out << sample.name; }

// Ops that no row can call by itself, and where they are tested instead.
const std::map<std::string, std::string>& ops_tested_elsewhere();

// Values of the operands, the same on every rank, uncommitted.
std::vector<Array> operands_of(const OpSample&, unsigned seed);
// Values for a cotangent or tangent of x.
Array random_like(const Array& x, std::mt19937& random);

}  // namespace tessera::test
