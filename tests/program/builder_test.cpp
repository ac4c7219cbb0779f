// The program builder: shared reshards, partial terms, and programs that verify() rejects.
#include "program/builder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

using testing::HasSubstr;

const Mesh line = abstract_mesh({4}, {"x"});
const Mesh grid = abstract_mesh({4, 2}, {"x", "y"});
const Type matrix{Shape{8, 16}, float32};

struct Builder : testing::Test {
  ProgramBuilder builder;
  int input(const Mesh& mesh, const P& spec) {
    return builder.add_input(matrix, NamedSharding(mesh, spec), nullptr);
  }
  std::size_t written() { return builder.program().instructions.size(); }
};

TEST_F(Builder, a_reshard_to_where_it_lies_is_the_value_itself) {
  const int v = input(line, P("x"));
  EXPECT_EQ(builder.reshard(v, NamedSharding(line, P("x"))), v);
  EXPECT_EQ(written(), 0u);
}

TEST_F(Builder, the_same_reshard_twice_is_one_value) {
  const int v = input(line, P("x"));
  const int first = builder.reshard(v, NamedSharding(line, P()));
  EXPECT_EQ(builder.reshard(v, NamedSharding(line, P())), first);
  EXPECT_EQ(written(), 1u);
}

TEST_F(Builder, a_reshard_starts_from_the_nearest_layout_at_hand) {
  const int v = input(grid, P("x", "y"));
  builder.reshard(v, NamedSharding(grid, P()));
  const auto before = written();
  const int sliced = builder.reshard(v, NamedSharding(grid, P(None, "x")));
  std::int64_t bytes = 0;
  for (auto i = before; i < written(); ++i) bytes += builder.program().instructions[i].bytes;
  EXPECT_EQ(bytes, 0);  // sliced from the replicated value
  EXPECT_EQ(builder.value(sliced).layout, NamedSharding(grid, P(None, "x")));
}

TEST_F(Builder, partial_terms_are_combined_once) {
  const int v = input(line, P());
  builder.set_partial(v, {0}, ReduceKind::sum);
  const int whole = builder.combine(v);
  EXPECT_NE(whole, v);
  EXPECT_TRUE(builder.value(whole).partial_axes.empty());
  EXPECT_EQ(builder.combine(v), whole);
  EXPECT_EQ(collective_kind(builder.program().instructions[0]), "all-reduce");
}

TEST_F(Builder, partial_terms_that_are_wanted_split_go_straight_into_blocks) {
  const int v = input(line, P());
  builder.set_partial(v, {0}, ReduceKind::sum);
  builder.reshard(v, NamedSharding(line, P("x")));
  ASSERT_EQ(written(), 1u);
  EXPECT_EQ(collective_kind(builder.program().instructions[0]), "reduce-scatter");
}

TEST_F(Builder, an_alias_moves_nothing) {
  const int v = input(line, P("x"));
  const int w = builder.alias(v, matrix, NamedSharding(line, P("x")));
  EXPECT_NE(w, v);
  EXPECT_EQ(collective_kind(builder.program().instructions[0]), "");
  EXPECT_TRUE(traffic_of(builder.program().instructions[0]).empty());
}

std::string refusal_of(const Program& program) {
  try {
    verify(program);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(Builder, verify_takes_what_it_writes) {
  const int v = input(line, P("x"));
  builder.program().outputs = {builder.reshard(v, NamedSharding(line, P()))};
  EXPECT_EQ(refusal_of(builder.program()), "no error");
  EXPECT_THAT(program_text(builder.program()), HasSubstr("all-gather"));
}

TEST_F(Builder, verify_refuses_a_value_that_is_read_before_it_is_made) {
  const int v = input(line, P("x"));
  builder.reshard(builder.reshard(v, NamedSharding(line, P())), NamedSharding(line, P(None, "x")));
  Program program = builder.program();
  ASSERT_EQ(program.instructions.size(), 2u);
  std::swap(program.instructions[0], program.instructions[1]);
  EXPECT_THAT(refusal_of(program), HasSubstr("before it is defined"));
}

TEST_F(Builder, verify_refuses_an_output_that_nobody_makes) {
  input(line, P("x"));
  const int made = builder.reshard(0, NamedSharding(line, P()));
  Program program = builder.program();
  program.instructions.clear();
  program.outputs = {made};
  EXPECT_THAT(refusal_of(program), HasSubstr("is not defined"));
}

}  // namespace
}  // namespace tessera
