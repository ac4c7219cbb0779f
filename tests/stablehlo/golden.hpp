// The programs written by make_goldens.py: JAX's texts, arguments and results.
#pragma once
#include <gtest/gtest.h>

#include <tessera/array.hpp>
#include <tessera/jit/stablehlo.hpp>
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/data.hpp"
#include "support/text.hpp"

namespace tessera::test {

struct GoldenProgram {
  std::string name, text;
  nlohmann::json values;
  int devices() const { return values.value("devices", 1); }
};

inline std::filesystem::path golden_programs() { return tests_folder() / "stablehlo" / "golden"; }

inline GoldenProgram golden_program(const std::string& name) {
  return {name, text_of_file(golden_programs() / (name + ".stablehlo")),
          nlohmann::json::parse(text_of_file(golden_programs() / (name + ".json")))};
}

inline std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_programs()))
    if (entry.path().extension() == ".stablehlo") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

inline double number_in(const nlohmann::json& value) {
  return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();
}

inline Array array_in(const nlohmann::json& described) {
  const Shape shape(described["shape"].get<std::vector<std::int64_t>>());
  const Dtype dtype = dtype_from_name(described["dtype"].get<std::string>());
  const auto& values = described["values"];
  if (is_integer(dtype) && dtype != uint64) {
    std::vector<std::int64_t> integers;
    for (const auto& value : values) integers.push_back(value.get<std::int64_t>());
    return astype(array(integers, shape), dtype);
  }
  if (dtype == uint64) return array(values.get<std::vector<std::uint64_t>>(), shape);
  std::vector<double> numbers;
  for (const auto& value : values) numbers.push_back(number_in(value));
  if (!is_complex(dtype)) return astype(array(numbers, shape), dtype);
  std::vector<std::complex<double>> pairs;
  for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) pairs.emplace_back(numbers[i], numbers[i + 1]);
  return astype(array(pairs, shape), dtype);
}

inline std::vector<Array> arguments_of(const GoldenProgram& program) {
  std::vector<Array> arguments;
  for (const auto& argument : program.values["arguments"]) arguments.push_back(array_in(argument));
  return arguments;
}

// Real and imaginary parts, as doubles.
inline std::vector<double> parts_of_values(const Array& x) {
  if (!is_complex(x.dtype())) return to_vector<double>(x);
  std::vector<double> parts;
  for (const auto& z : to_vector<std::complex<double>>(x))
    parts.push_back(z.real()), parts.push_back(z.imag());
  return parts;
}

// The results of a program beside JAX's.
inline void expect_results(const GoldenProgram& program, const std::vector<Array>& results) {
  const auto& wanted = program.values["results"];
  const double tolerance = program.values["tolerance"].get<double>();
  ASSERT_EQ(results.size(), wanted.size());
  for (std::size_t r = 0; r < results.size(); ++r) {
    SCOPED_TRACE(program.name + ", result " + std::to_string(r));
    EXPECT_EQ(name(results[r].dtype()), wanted[r]["dtype"].get<std::string>());
    ASSERT_EQ(results[r].shape(), Shape(wanted[r]["shape"].get<std::vector<std::int64_t>>()));
    const auto got = parts_of_values(results[r]);
    double largest = 1;
    for (const auto& value : wanted[r]["values"])
      if (const double v = number_in(value); std::isfinite(v)) largest = std::max(largest, std::abs(v));
    const bool is_exact = !is_inexact(results[r].dtype());
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double v = number_in(wanted[r]["values"][i]);
      const bool is_same = std::isnan(v) ? std::isnan(got[i]) : got[i] == v;
      if (!is_same && (is_exact || !(std::abs(got[i] - v) <= tolerance * largest)))
        FAIL() << "element " << i << " is " << got[i] << " and not " << v;
    }
  }
}

}  // namespace tessera::test
