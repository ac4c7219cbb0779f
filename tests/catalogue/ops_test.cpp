// Records of all ops: each is complete, and some row of the catalogue calls it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>
#include <tessera/transforms.hpp>

#include <set>

#include "catalogue/samples.hpp"
#include "compile/graph.hpp"
#include "graph/node.hpp"
#include "graph/op.hpp"

namespace tessera::test {
namespace {

void collect_ops(const std::vector<Array>& from, std::set<std::string>& names) {
  for (const auto& node : collect(from, false).nodes) names.insert(node->op->name);
}

TEST(Ops, have_every_rule_or_say_why_not) {
  for (const auto* op : registered_ops()) {
    SCOPED_TRACE(op->name);
    EXPECT_TRUE(op->infer != nullptr);
    EXPECT_FALSE(std::holds_alternative<std::monostate>(op->sharding)) << "how it is sharded";
    EXPECT_FALSE(std::holds_alternative<std::monostate>(op->runs)) << "how it is computed";
    EXPECT_NE(static_cast<bool>(op->vjp), op->vjp.why() != nullptr) << "a vjp, or why there is none";
    EXPECT_NE(static_cast<bool>(op->batch), op->batch.why() != nullptr)
        << "a batch rule, or why there is none";
    if (const auto* communicate = std::get_if<Communicating>(&op->runs)) {
      EXPECT_TRUE(communicate->cost != nullptr) << "what its talk kernel moves";
    }
  }
}

TEST(Ops, stand_once_in_the_register) {
  std::set<std::string> names;
  for (const auto* op : registered_ops()) EXPECT_TRUE(names.insert(op->name).second) << op->name;
}

TEST(Ops, stand_in_the_table_of_samples) {
  std::set<std::string> sampled, registered;
  for (const auto& sample : samples()) {
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
        << op->name << ": add a row to tests/catalogue that calls it";
  }
  for (const auto& [name, reason] : ops_tested_elsewhere())
    EXPECT_TRUE(registered.contains(name)) << name << " is no op";
}

}  // namespace
}  // namespace tessera::test
