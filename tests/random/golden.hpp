// The cases written by make_goldens.py: JAX's draws.
#pragma once
#include <gtest/gtest.h>

#include <tessera/ops.hpp>
#include <tessera/random.hpp>

#include <cmath>
#include <complex>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/data.hpp"

namespace tessera::test {

struct Case {
  std::string draw;
  random::Key key;
  Shape shape;
  Dtype dtype;
  nlohmann::json args, values;

  double number(std::size_t i) const { return args[i].get<double>(); }
  std::int64_t integer(std::size_t i) const { return args[i].get<std::int64_t>(); }
  // A parameter: a weakly typed number or an array.
  Array array(std::size_t i) const {
    const auto& arg = args[i];
    if (arg.is_number_integer()) return Array(arg.get<std::int64_t>());
    if (arg.is_number()) return Array(arg.get<double>());
    const Shape of(arg["shape"].get<std::vector<std::int64_t>>());
    return astype(tessera::array(arg["values"].get<std::vector<double>>(), of),
                  dtype_from_name(arg["dtype"].get<std::string>()));
  }
  std::string text() const {
    return draw + " of " + to_string(shape) + " " + name(dtype) + " with " + args.dump() + " under key " +
           to_string(random::key_data(key));
  }
};

inline random::Key key_of(std::uint32_t high, std::uint32_t low) {
  return random::wrap_key_data(tessera::array(std::vector<std::uint32_t>{high, low}));
}

inline std::vector<Case> read_cases(const std::string& file) {
  std::ifstream in(tests_folder() / "random" / "golden" / (file + ".json"));
  if (!in) throw std::runtime_error("no golden file " + file);
  std::vector<Case> cases;
  for (const auto& c : nlohmann::json::parse(in))
    cases.push_back({c["draw"], key_of(c["key"][0], c["key"][1]),
                     Shape(c["shape"].get<std::vector<std::int64_t>>()),
                     dtype_from_name(c["dtype"].get<std::string>()), c["args"], c["values"]});
  return cases;
}

// Compares integers and bools bit for bit.
inline void expect_same_integers(const Array& x, const Case& c) {
  ASSERT_EQ(x.shape(), c.shape) << c.text();
  ASSERT_EQ(x.dtype(), c.dtype) << c.text();
  const auto expect = [&]<class T>(T) {
    const auto values = to_vector<T>(x);
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], c.values[i].get<T>()) << "element " << i << " of " << c.text();
  };
  if (x.dtype() == uint64) return expect(std::uint64_t{});
  expect(std::int64_t{});
}

// Compares floats within `ulps` units in the last place of float32 with JAX's; 0: bit for bit. Complex values
// are compared part by part. size: the magnitude of the numbers whose difference a value is, if it is one. In
// float64 JAX's own logarithms are off by 110 units (log1p of -0.41), so 32 times as many are allowed; JAX
// flushes numbers below the smallest normal one to 0.
inline void expect_close(const Array& x, const Case& c, double ulps, double size = 0) {
  ASSERT_EQ(x.shape(), c.shape) << c.text();
  ASSERT_EQ(x.dtype(), c.dtype) << c.text();
  std::vector<double> values;
  if (is_complex(x.dtype()))
    for (const auto z : to_vector<std::complex<double>>(x)) values.insert(values.end(), {z.real(), z.imag()});
  else
    values = to_vector<double>(x);
  const bool is_single = real_dtype(x.dtype()) == float32;
  const double relative = ulps * (is_single ? 0x1p-23 : 32 * 0x1p-52), tiny = ulps == 0   ? 0
                                                                              : is_single ? 0x1p-126
                                                                                          : 0x1p-1022;
  ASSERT_EQ(values.size(), c.values.size()) << c.text();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double text =
        c.values[i].is_string() ? std::stod(c.values[i].get<std::string>()) : c.values[i].get<double>();
    const double expected = is_single ? static_cast<float>(text) : text;
    const double room = std::max(std::max(std::abs(expected), size) * relative, tiny);
    if ((std::isnan(expected) && std::isnan(values[i])) || values[i] == expected) continue;
    ASSERT_LE(std::abs(values[i] - expected), room)
        << "element " << i << " of " << c.text() << " is " << values[i] << ", not " << expected;
  }
}

}  // namespace tessera::test
