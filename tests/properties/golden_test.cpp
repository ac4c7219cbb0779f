// Values, shapes and dtypes of the samples, as NumPy and SciPy give them (make_goldens.py, which says how to
// write goldens.json anew). That shardings change nothing is said by ops_test.cpp.
#include <gtest/gtest.h>

#include <tessera/runtime.hpp>

#include <complex>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "support/op_samples.hpp"

namespace tessera::test {
namespace {

using nlohmann::json;
using Value = std::complex<double>;

struct Golden {
  Dtype dtype;
  Shape shape;
  std::vector<Value> values;
};

json to_json(const Array& x) {
  std::vector<double> re, im;
  for (const auto& v : to_vector<Value>(x)) re.push_back(v.real()), im.push_back(v.imag());
  json result{{"dtype", name(x.dtype())}, {"shape", x.shape().vector()}, {"re", re}};
  if (is_complex(x.dtype())) result["im"] = im;
  return result;
}

// NaN and infinities are words.
double number(const json& v) {
  return v.is_string() ? std::strtod(v.get<std::string>().c_str(), nullptr) : v.get<double>();
}
Golden golden_from(const json& g) {
  Golden golden{dtype_from_name(g["dtype"]), Shape(g["shape"].get<std::vector<std::int64_t>>()), {}};
  for (std::size_t i = 0; i < g["re"].size(); ++i)
    golden.values.emplace_back(number(g["re"][i]), g.contains("im") ? number(g["im"][i]) : 0.0);
  return golden;
}

const std::map<std::string, std::vector<Golden>>& goldens() {
  static const auto all = [] {
    const auto tests = std::filesystem::path(TESSERA_TEST_DATA).parent_path();
    std::map<std::string, std::vector<Golden>> found;
    const json file = json::parse(std::ifstream(tests / "properties/goldens.json"));
    for (const auto& [name, results] : file["samples"].items())
      for (const auto& result : results) found[name].push_back(golden_from(result));
    return found;
  }();
  return all;
}

std::vector<OpSample> samples_with_goldens() {
  std::vector<OpSample> samples;
  for (const auto& sample : op_samples())
    if (goldens().contains(sample.name)) samples.push_back(sample);
  return samples;
}

class KnownSample : public testing::TestWithParam<OpSample> {};
INSTANTIATE_TEST_SUITE_P(Ops, KnownSample, testing::ValuesIn(samples_with_goldens()),
                         [](const auto& info) { return info.param.name; });

TEST_P(KnownSample, is_what_numpy_gives) {
  const auto& expected = goldens().at(GetParam().name);
  const auto results = GetParam().call(operands_of(GetParam(), 1));
  ASSERT_EQ(results.size(), expected.size());
  for (std::size_t r = 0; r < results.size(); ++r) {
    const auto& [dtype, shape, values] = expected[r];
    ASSERT_EQ(results[r].shape(), shape) << "result " << r;
    if (is_inexact(dtype))
      EXPECT_EQ(results[r].dtype(), dtype) << "result " << r;
    else  // integers are 32 bits wide here, as in JAX
      EXPECT_EQ(is_bool(results[r].dtype()), is_bool(dtype)) << "result " << r;
    const auto got = to_vector<Value>(results[r]);
    const double tolerance = real_dtype(dtype) == float32 ? 1e-6 : 1e-10;
    double scale = 1;
    for (const auto& v : values)
      if (std::isfinite(std::abs(v))) scale = std::max(scale, std::abs(v));
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_TRUE(std::abs(got[i] - values[i]) <= tolerance * scale || got[i] == values[i] ||
                  (got[i] != got[i] && values[i] != values[i]))
          << "result " << r << ", element " << i << ": " << got[i] << ", and not " << values[i];
  }
}

TEST(Known, every_golden_is_of_a_sample) {
  EXPECT_GT(goldens().size(), 80U);
  EXPECT_EQ(samples_with_goldens().size(), goldens().size());
}

// For make_goldens.py: the operands of all samples.
TEST(Known, operands_are_written_when_asked_for) {
  const char* const path = std::getenv("WRITE_OPERANDS");
  if (path == nullptr) GTEST_SKIP() << "WRITE_OPERANDS names no file";
  json all;
  for (const auto& sample : op_samples()) {
    all[sample.name] = json::array();
    for (const auto& x : operands_of(sample, 1)) all[sample.name].push_back(to_json(x));
  }
  if (process_index() == 0) std::ofstream(path) << all.dump();
}

}  // namespace
}  // namespace tessera::test
