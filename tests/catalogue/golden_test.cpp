// Compares values, shapes and dtypes of the rows with those of NumPy, SciPy and JAX (goldens.txt, which
// make_goldens.py writes). layouts_test.cpp checks that shardings do not change them.
#include <gtest/gtest.h>

#include <tessera/runtime.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "catalogue/samples.hpp"
#include "support/compare.hpp"
#include "support/data.hpp"
#include "support/values_text.hpp"

namespace tessera::test {
namespace {

const std::map<std::string, std::vector<HostArray>>& goldens() {
  static const auto all = [] {
    std::map<std::string, std::vector<HostArray>> found;
    std::ifstream file(tests_folder() / "catalogue/goldens.txt");
    for (std::string line; std::getline(file, line);)
      if (!line.starts_with("#")) {
        auto golden = values_from(line);
        found[golden.name].push_back(golden.values);
      }
    return found;
  }();
  return all;
}

std::vector<Sample> samples_with_goldens() {
  std::vector<Sample> found;
  for (const auto& sample : samples())
    if (goldens().contains(sample.name)) found.push_back(sample);
  return found;
}

class Golden : public testing::TestWithParam<Sample> {};
INSTANTIATE_TEST_SUITE_P(Rows, Golden, testing::ValuesIn(samples_with_goldens()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Golden, is_what_numpy_gives) {
  const auto& expected = goldens().at(GetParam().name);
  const auto results = GetParam().call(operands_of(GetParam(), 1));
  ASSERT_EQ(results.size(), expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Array golden = array(expected[i]);
    const std::string what = "result " + std::to_string(i);
    if (is_inexact(golden.dtype()))
      EXPECT_EQ(results[i].dtype(), golden.dtype()) << what;
    else  // integers are 32 bits wide here, as in JAX
      EXPECT_EQ(is_bool(results[i].dtype()), is_bool(golden.dtype())) << what;
    const double tolerance = real_dtype(golden.dtype()) == float32 ? 2e-6 : 1e-10;
    expect_close(results[i], golden, tolerance, what, Scale::largest);
  }
}

TEST(Goldens, are_of_rows_that_exist) {
  EXPECT_GT(goldens().size(), 400U);
  EXPECT_EQ(samples_with_goldens().size(), goldens().size());
}

// The operands of all samples for make_goldens.py, and results for the comparison with Python.
TEST(Goldens, operands_and_results_are_written_when_asked_for) {
  const char* const folder = std::getenv("WRITE_CATALOGUE");
  if (folder == nullptr) GTEST_SKIP() << "WRITE_CATALOGUE names no folder";
  std::string operands, results;
  for (const auto& sample : samples()) {
    const auto x = operands_of(sample, 1), y = sample.call(x);
    operands += "# " + sample.name + " " + sample.file + "\n";
    for (std::size_t i = 0; i < x.size(); ++i) operands += line_of(sample.name, i, x[i]);
    for (std::size_t i = 0; i < y.size(); ++i) results += line_of(sample.name, i, y[i]);
  }
  if (process_index() != 0) return;
  std::ofstream(std::filesystem::path(folder) / "operands.tsv") << operands;
  std::ofstream(std::filesystem::path(folder) / "results.tsv") << results;
}

}  // namespace
}  // namespace tessera::test
