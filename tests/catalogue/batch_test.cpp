// The property of vmap: mapping an op equals calling it on each example, for any position of the batch dim
// and any subset of batched operands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>
#include <tessera/transforms.hpp>

#include "catalogue/samples.hpp"
#include "support/compare.hpp"
#include "support/placed.hpp"

namespace tessera::test {
namespace {

std::vector<Sample> samples_with_operands() {
  std::vector<Sample> found;
  for (const auto& sample : samples_without("vmap:no"))
    if (!sample.operands.empty()) found.push_back(sample);
  return found;
}

class Batch : public testing::TestWithParam<Sample> {};
INSTANTIATE_TEST_SUITE_P(Rows, Batch, testing::ValuesIn(samples_with_operands()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Batch, is_the_loop_over_the_examples) {
  constexpr int size = 3;
  const auto& sample = GetParam();
  std::mt19937 random(13);
  std::vector<std::vector<Array>> examples;
  for (unsigned e = 0; e < size; ++e) examples.push_back(operands_of(sample, 20 + e));
  for (int round = 0; round < 3; ++round) {
    const Mesh mesh = random_mesh(random);
    std::vector<Array> mapped;
    std::vector<int> dims;
    const std::size_t always = random() % sample.operands.size();
    std::string layouts;
    for (std::size_t i = 0; i < sample.operands.size(); ++i) {
      const int ndim = sample.operands[i].shape.ndim();
      dims.push_back(i == always || random() % 3 != 0
                         ? static_cast<int>(random() % static_cast<unsigned>(ndim + 1))
                         : -1);
      if (dims[i] < 0) {
        for (auto& example : examples) example[i] = examples[0][i];
        mapped.push_back(examples[0][i]);
      } else {
        mapped.push_back(stack({examples[0][i], examples[1][i], examples[2][i]}, dims[i]));
      }
      if (round > 0) mapped[i] = device_put(mapped[i], random_sharding(random, mesh, mapped[i].ndim()));
      layouts += std::to_string(dims[i]) + ": " + text_of(mapped[i].sharding()) + " ";
    }
    SCOPED_TRACE(layouts);
    // Operands without a batch dim are captured from outside.
    const auto call = [&](const std::vector<Array>& batched) {
      std::vector<Array> all;
      for (std::size_t i = 0, next = 0; i < dims.size(); ++i)
        all.push_back(dims[i] < 0 ? mapped[i] : batched[next++]);
      return sample.call(all);
    };
    int axis = round == 0 ? 0 : round == 1 ? -1 : 1;  // the position of the batch dim as the op sees it
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i] >= 0 && sample.operands[i].shape.ndim() == 0) axis = 0;
    std::vector<Array> batches;
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i] >= 0) batches.push_back(moveaxis(mapped[i], dims[i], axis));
    const auto results = vmap(call, {.in_axes = axis})(batches);
    for (int e = 0; e < size; ++e) {
      const auto expected = sample.call(examples[e]);
      ASSERT_EQ(results.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const Array result = results[i](e);
        ASSERT_EQ(result.dtype(), expected[i].dtype()) << "result " << i;
        expect_close(result, expected[i], real_dtype(result.dtype()) == float32 ? 1e-5 : 1e-11,
                     "result " + std::to_string(i) + " of example " + std::to_string(e));
      }
    }
  }
}

}  // namespace
}  // namespace tessera::test
