// Rules for every row of the table of elementwise ops, and the table in the documentation.
#include <tessera/tessera.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "ops/elementwise/define.hpp"
#include "support/data.hpp"

namespace tessera::test {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

std::vector<Dtype> all_dtypes() {
  std::vector<Dtype> all;
  for (int code = 0; code < dtype_count; ++code)
    if (!is_half(Dtype{code})) all.push_back({code});
  return all;
}

// Calls every op with a kernel on ones of that dtype; returns the result, or nullopt if the op refuses it.
std::optional<Array> called_on(const ElementwiseOp& op, Dtype dtype) {
  std::vector<Operand> x;
  for (int i = 0; i < op.row.kernel->arity(); ++i)
    x.push_back(i < op.row.dtype_input ? ones({2}, bool_) : ones({2}, dtype));
  try {
    return op(x);
  } catch (const DtypeError&) {
    return std::nullopt;
  }
}

// A dtype accepted when an op is recorded must have a kernel when it runs.
TEST(ElementwiseRows, have_a_kernel_for_every_dtype_they_take) {
  for (const auto* op : elementwise_ops()) {
    if (op->row.kernel == nullptr) continue;  // a cast
    for (const Dtype dtype : all_dtypes()) {
      const auto result = called_on(*op, dtype);
      if (!result) continue;
      const Dtype taken = result->node()->inputs[op->row.dtype_input].dtype();
      EXPECT_NE(op->row.kernel->of(taken), nullptr) << op->def.name << " of " << name(dtype);
      EXPECT_EQ(op->row.kernel->result(taken), result->dtype()) << op->def.name << " of " << name(dtype);
    }
  }
}

// 16-bit floats are accepted if float32 is, and replace it in the result.
TEST(ElementwiseRows, take_halves_as_float_32) {
  for (const auto* op : elementwise_ops()) {
    if (op->row.kernel == nullptr) continue;
    const auto wide = called_on(*op, float32);
    for (const Dtype half : {bfloat16, float16}) {
      const auto result = called_on(*op, half);
      ASSERT_EQ(result.has_value(), wide.has_value()) << op->def.name;
      if (!result) continue;
      EXPECT_EQ(result->dtype(), wide->dtype() == float32 ? half : wide->dtype()) << op->def.name;
    }
  }
}

TEST(ElementwiseRows, say_what_they_compute_and_how_they_are_tried) {
  for (const auto* op : elementwise_ops()) {
    EXPECT_THAT(std::string(op->says), Not(IsEmpty())) << op->def.name;
    EXPECT_EQ(op->trials.calls.empty(), op->row.kernel == nullptr) << op->def.name;
  }
}

TEST(ElementwiseRows, are_the_table_of_the_documentation) {
  const auto path = tests_folder().parent_path() / "src/ops/elementwise/TABLE.md";
  const std::string table = elementwise_table();
  if (std::getenv("WRITE_TABLE") != nullptr && process_index() == 0) std::ofstream(path) << table;
  std::ostringstream written;
  written << std::ifstream(path).rdbuf();
  EXPECT_EQ(written.str(), table) << "WRITE_TABLE=1 build/tests/ops_elementwise_test writes it anew";
}

}  // namespace
}  // namespace tessera::test
