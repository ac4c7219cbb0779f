// Sizes just below and above each threshold, with odd extents and odd starts of views: where an algorithm
// changes, the values do not. Thresholds are made smaller instead of arrays larger.
#include <gtest/gtest.h>
#include <tessera/tessera.hpp>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "api/evaluate.hpp"
#include "base/thresholds.hpp"

namespace tessera::test {
namespace {

using Function = std::function<Array(const Array&)>;

// Irregular integers: sums are exact, so every order of additions gives the same bits.
Array values(std::int64_t rows, std::int64_t columns, Dtype dtype) {
  const Array i = arange(rows * columns);
  return astype((i * 7919 + i * i % 131) % 251 - 125, dtype).reshape(rows, columns);
}

Sharding split(int dim) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  return NamedSharding(mesh, dim == 0 ? P("x", None) : P(None, "x"));
}

const std::vector<std::pair<const char*, Function>> programs = {
    {"a chain", [](const Array& x) { return maximum(x * 2 + 1, 3) - x; }},
    {"a chain of a view",
     [](const Array& x) { return x(slice(1), slice(3)) * 2 + x(slice(None, -1), slice(None, -3)); }},
    {"a chain of two outputs",
     [](const Array& x) {
       const Array y = x * 3 - 1;
       return concatenate({y, abs(y) + x}, 0);
     }},
    {"a turned matrix", [](const Array& x) { return transpose(x) + 1; }},
    {"rows become columns", [](const Array& x) { return device_put(x, split(1)) * 2; }},
    {"columns become rows", [](const Array& x) { return device_put(device_put(x, split(1)) + 1, split(0)); }},
    {"a product and a chain", [](const Array& x) { return maximum(matmul(x, transpose(x)) * 0.5f + 1, 0); }},
    {"products of a batch",
     [](const Array& x) {
       const Array batch = stack({x, x + 1, x - 1});
       return maximum(matmul(batch, swapaxes(batch, 1, 2)) + 2, 0);
     }},
    {"sorted rows", [](const Array& x) { return sort(x, 1); }},
    {"sorted columns", [](const Array& x) { return sort(x, 0); }},
    {"places of the largest", [](const Array& x) { return argmax(x, 1) + argmin(x, 0).sum(); }},
    {"sums",
     [](const Array& x) {
       return concatenate({sum(x, 0), sum(x, 1), sum(x).reshape(1)}, 0);
     }},
    {"running sums", [](const Array& x) { return cumsum(x, 0) + cumsum(x, 1); }},
    {"everywhere",
     [](const Array& x) {
       return device_put(x * 2, NamedSharding(make_mesh({device_count()}, {"x"}), P())) + 1;
     }},
    {"rolled and padded",
     [](const Array& x) {
       return pad(roll(x, 3, 0), {{1, 2}, {0, 5}});
     }},
    {"taken rows", [](const Array& x) { return take(x, arange(x.shape()[0]) * 5 % x.shape()[0], 0); }},
    {"bins", [](const Array& x) { return bincount(astype(ravel(x), int32) + 125, 381); }},
};

Array compute(const Function& f, const Array& x, bool compiled) { return compiled ? jit(f)(x) : f(x); }

void expect_same_bits(const std::string& what, const Array& a, const Array& b) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  ASSERT_EQ(a.dtype(), b.dtype()) << what;
  const auto x = to_host(a), y = to_host(b);
  ASSERT_EQ(std::memcmp(x.bytes(), y.bytes(), static_cast<std::size_t>(x.nbytes())), 0) << what;
}

class Thresholds : public testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(DividedBy, Thresholds, testing::Values(64, 4096, 1 << 20),
                         [](const auto& info) { return std::to_string(info.param); });

// Thresholds of 8 MiB to 64 KiB become 2048 to 16 bytes if divided by 4096, and 128 KiB to 1 KiB if divided
// by 64: the extents below are on both sides of each, on one rank and on several.
TEST_P(Thresholds, change_the_way_and_not_the_values) {
  const std::pair<std::int64_t, std::int64_t> extents[] = {
      {3, 5}, {15, 17}, {16, 16}, {31, 33}, {63, 65}, {64, 64}, {65, 67}, {129, 127}, {1, 2049}, {181, 183}};
  // Taken in turn, so that each program uses each dtype.
  const Dtype dtypes[] = {float32, uint8, float64, int32};
  int n = 0;
  for (const auto& [rows, columns] : extents)
    for (const auto& [says, program] : programs) {
      const Dtype dtype = dtypes[n++ % 4];
      const std::string what = std::string(says) + " of " + std::to_string(rows) + " x " +
                               std::to_string(columns) + " " + name(dtype);
      const Array x = device_put(values(rows, columns, dtype), split(0));
      const Array usual = compute(program, x, false);
      eval(usual);
      const LowThresholds low(GetParam());
      forget_plans();  // plans depend on the thresholds
      expect_same_bits(what, usual, compute(program, x, false));
      expect_same_bits(what + ", jitted", usual, compute(program, x, true));
      if (HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace tessera::test
