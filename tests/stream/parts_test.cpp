// Ops say along which dims parts of their operands give parts of their results, or stand here with a reason.
#include "graph/op.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace tessera::test {
namespace {

const std::map<std::string, std::string>& looks_at_positions() {
  static const std::map<std::string, std::string> reasons = {
      {"conv", "the dims of its windows"},
      {"conv_weights", "the dims of its windows"},
      {"diagonal", "compares positions"},
      {"eye", "compares positions"},
      {"on_diagonal", "compares positions"},
      {"iota", "is made of positions"},
      {"scatter", "its indices count from the start of a dim, as slabs give it (index_of_scatter)"},
      {"compress", "counts along its first dim"},
      {"split_keys", "counts the keys"},
      {"read_file", "reads at its positions"},
  };
  return reasons;
}
bool draws_by_position(const std::string& name) { return name.starts_with("random_"); }

TEST(Parts, of_every_op_with_a_rule_are_known) {
  std::size_t claims = 0;
  for (const auto* op : registered_ops()) {
    const Parts parts = parts_of(*op);
    claims += parts != Parts::none;
    if (parts == Parts::all_dims || parts == Parts::reduced_dims || parts == Parts::unreduced_dims) {
      EXPECT_TRUE(rule_of(*op) != nullptr) << op->name << " has no rule that names the dims";
    }
    if (parts != Parts::none || rule_of(*op) == nullptr || draws_by_position(op->name)) continue;
    EXPECT_TRUE(looks_at_positions().contains(op->name))
        << op->name << ": set .parts in its record, or say here why it looks at positions";
  }
  EXPECT_GT(claims, 50u);
}

TEST(Parts, of_ops_that_look_at_positions_are_none) {
  for (const auto* op : registered_ops())
    if (looks_at_positions().contains(op->name)) {
      EXPECT_EQ(parts_of(*op), Parts::none) << op->name;
    }
}

}  // namespace
}  // namespace tessera::test
