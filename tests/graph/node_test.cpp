// Params of ops, and the nodes that own them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/ops.hpp>

#include "graph/op.hpp"

namespace tessera {
namespace {

using testing::ContainsRegex;

struct Sample {
  std::int64_t shift = 0;
  std::vector<int> dims;
  std::optional<Shape> shape;
  bool wraps = false;
  template <class V> void fields(V&& visit) const {
    visit("shift", shift), visit("dims", dims), visit("shape", shape), visit("wraps", wraps);
  }
};

TEST(Params, text_names_every_field) {
  EXPECT_EQ(make_params(Sample{-3, {0, 2}, Shape{4, 5}, true})->text(),
            "shift=-3 dims=[0,2] shape=(4, 5) wraps=true");
  EXPECT_EQ(make_params(Sample{})->text(), "shift=0 dims=[] shape=none wraps=false");
}

TEST(Params, every_field_changes_the_hash) {
  const Sample sample{1, {0}, std::nullopt, false};
  const auto hash = make_params(sample)->hash();
  EXPECT_EQ(make_params(sample)->hash(), hash);
  EXPECT_NE(make_params(Sample{2, {0}, std::nullopt, false})->hash(), hash);
  EXPECT_NE(make_params(Sample{1, {0, 0}, std::nullopt, false})->hash(), hash);
  EXPECT_NE(make_params(Sample{1, {0}, Shape{}, false})->hash(), hash);
  EXPECT_NE(make_params(Sample{1, {0}, std::nullopt, true})->hash(), hash);
}

TEST(Params, are_read_back_as_they_were_given) {
  const auto params = make_params(Sample{7, {1}, Shape{2}, true});
  EXPECT_EQ(params->as<Sample>().shift, 7);
  EXPECT_EQ(params->as<Sample>().shape, (Shape{2}));
}

TEST(Node, a_chain_of_a_million_is_released_without_recursion) {
  Array last = make_placeholder({Shape{2}, float32}, std::nullopt, nullptr, 0);
  for (int i = 0; i < 1'000'000; ++i) {
    auto node = std::make_shared<Node>();
    if (i % 2 == 0) node->inputs.push_back(last);  // two inputs that are one node, as in x * x
    node->inputs.push_back(std::move(last));
    node->outputs.resize(1);
    last = Array(std::move(node), 0);
  }
  last = Array();
  SUCCEED();  // recursive destruction would have overflowed the stack
}

TEST(Node, what_others_still_hold_outlives_the_chain) {
  const Array base = make_placeholder({Shape{2}, float32}, std::nullopt, nullptr, 0);
  Array chain = base;
  for (int i = 0; i < 10; ++i) chain = chain + chain;
  chain = Array();
  EXPECT_EQ(base.shape(), (Shape{2}));
  EXPECT_EQ(base.node().use_count(), 1);
}

TEST(Node, is_described_by_type_and_the_users_line) {
  EXPECT_THAT(describe(zeros({3, 4}) + 1),
              ContainsRegex("^float32\\[3,4\\] \\(uncommitted\\) from node_test.cpp:[0-9]+$"));
}

TEST(Recording, numbers_nodes_in_order) {
  const Array a = zeros({2}), b = a + 1, c = a * 2;
  EXPECT_LT(a.node()->serial, b.node()->serial);
  EXPECT_LT(b.node()->serial, c.node()->serial);
}

TEST(Recording, refuses_an_array_that_holds_nothing) {
  try {
    Array() + 1;
    FAIL() << "no error";
  } catch (const ArgumentError& error) {
    EXPECT_THAT(error.what(), ContainsRegex("add.*holds nothing"));
  }
}

}  // namespace
}  // namespace tessera
