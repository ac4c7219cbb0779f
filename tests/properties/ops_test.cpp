// Laws of every op: its record is complete, it stands in the table of samples, and its values do not depend
// on shardings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>
#include <tessera/transforms.hpp>

#include <cmath>
#include <set>

#include "graph/op.hpp"
#include "support/layouts.hpp"
#include "support/op_samples.hpp"

namespace tessera::test {
namespace {

void collect_ops(const std::vector<Array>& from, std::set<std::string>& names) {
  for (const auto& node : collect(from, false).nodes) names.insert(node->op->name);
}

TEST(Ops, HaveEveryRuleOrSayWhyNot) {
  for (const auto* op : registered_ops()) {
    SCOPED_TRACE(op->name);
    EXPECT_TRUE(op->infer != nullptr);
    EXPECT_FALSE(std::holds_alternative<std::monostate>(op->sharding)) << "how it is sharded";
    EXPECT_FALSE(std::holds_alternative<std::monostate>(op->runs)) << "how it is computed";
    EXPECT_NE(static_cast<bool>(op->vjp), op->vjp.why() != nullptr) << "a vjp, or why there is none";
    EXPECT_NE(static_cast<bool>(op->batch), op->batch.why() != nullptr)
        << "a batch rule, or why there is none";
    if (const auto* talk = std::get_if<Talk>(&op->runs)) {
      EXPECT_TRUE(talk->cost != nullptr) << "what its talk kernel moves";
    }
  }
}

TEST(Ops, StandOnceInTheRegister) {
  std::set<std::string> names;
  for (const auto* op : registered_ops()) EXPECT_TRUE(names.insert(op->name).second) << op->name;
}

TEST(Ops, StandInTheTableOfSamples) {
  std::set<std::string> sampled, registered;
  for (const auto& sample : op_samples()) {
    const auto x = operands_of(sample, 1);
    const auto [out, pullback] = vjp(sample.call, x);
    collect_ops(out, sampled);
    if (sample.smooth == Smooth::no) continue;
    std::mt19937 random(1);
    std::vector<Array> cotangents;
    for (const auto& y : out) cotangents.push_back(random_like(y, random));
    collect_ops(std::get<0>(pullback(cotangents)), sampled);
  }
  for (const auto* op : registered_ops()) {
    registered.insert(op->name);
    const bool elsewhere = ops_tested_elsewhere().contains(op->name);
    EXPECT_TRUE(sampled.contains(op->name) || elsewhere)
        << op->name << ": add a row to tests/support/op_samples.cpp";
  }
  for (const auto& [name, reason] : ops_tested_elsewhere())
    EXPECT_TRUE(registered.contains(name)) << name << " is no op";
}

class Sample : public testing::TestWithParam<OpSample> {};
INSTANTIATE_TEST_SUITE_P(Ops, Sample, testing::ValuesIn(op_samples()),
                         [](const auto& info) { return info.param.name; });

void expect_same_values(const Array& a, const Array& b, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  ASSERT_EQ(a.dtype(), b.dtype()) << what;
  if (!is_inexact(a.dtype())) {
    ASSERT_EQ(to_vector<std::int64_t>(a), to_vector<std::int64_t>(b)) << what;
    return;
  }
  const auto x = to_vector<std::complex<double>>(a), y = to_vector<std::complex<double>>(b);
  const double tolerance = real_dtype(a.dtype()) == float64 ? 1e-13 : 1e-5;
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_TRUE(std::abs(x[i] - y[i]) <= tolerance * std::max(1.0, std::abs(x[i])) || x[i] == y[i])
        << what << ": element " << i << " is " << y[i] << ", unsharded " << x[i];
}

TEST_P(Sample, has_the_same_values_on_any_sharding) {
  const auto& sample = GetParam();
  std::mt19937 random(11);
  const auto x = operands_of(sample, 1);
  const auto expected = sample.call(x);
  for (int round = 0; round < 4; ++round) {
    const Mesh mesh = random_mesh(random);
    std::vector<Array> sharded;
    std::string layouts;
    for (const auto& leaf : x) {
      sharded.push_back(device_put(leaf, random_sharding(random, mesh, leaf.ndim())));
      layouts += text_of(sharded.back().sharding()) + " ";
    }
    auto results = sample.call(sharded);
    if (x.empty())  // created where it is wanted
      for (auto& result : results) result = device_put(result, random_sharding(random, mesh, result.ndim()));
    eval(expected, results);
    ASSERT_EQ(results.size(), expected.size());
    for (std::size_t i = 0; i < results.size(); ++i)
      expect_same_values(expected[i], results[i],
                         layouts + "-> result " + std::to_string(i) + " " + text_of(results[i].sharding()));
  }
}

}  // namespace
}  // namespace tessera::test
