#include "mesh/rule.hpp"
#include "support/errors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/error.hpp>

namespace tessera {
namespace {

using testing::HasSubstr;

std::string factors(const char* sentence, std::vector<Shape> in, std::vector<Shape> out,
                    const RuleReading& reading = {}) {
  return to_string(RuleText(sentence).on(in, out, reading));
}
std::string refusal(const char* sentence, std::vector<Shape> in = {}, std::vector<Shape> out = {{}},
                    const RuleReading& reading = {}) {
  return test::error_or<InternalError>("no error", [&] { (void)factors(sentence, in, out, reading); });
}

TEST(RuleText, a_group_has_as_many_dims_as_its_operand_leaves) {
  const char* softmax = "B.. n -> B.. n | whole n";
  EXPECT_EQ(factors(softmax, {{3}}, {{3}}), "i -> i | whole i");
  EXPECT_EQ(factors(softmax, {{4, 5, 3}}, {{4, 5, 3}}), "i j k -> i j k | whole k");
}

TEST(RuleText, groups_of_several_operands_are_found_one_after_the_other) {
  // B follows from the first operand, then V from the second.
  EXPECT_EQ(factors("B.. n, B.. V.. -> B.. V.. | sum n", {{2, 9}, {2, 3, 4}}, {{2, 3, 4}}),
            "i j, i k l -> i k l | sum j");
  EXPECT_EQ(factors("B.. n, B.. V.. -> B.. V.. | sum n", {{9}, {}}, {{}}), "i,  ->  | sum i");
}

TEST(RuleText, sizes_that_shapes_do_not_tell_are_read_from_params) {
  const char* gather = "L.. A.. R.., {I..} -> L.. I.. R.. | sum A";
  EXPECT_EQ(factors(gather, {{5, 6, 7}, {2}}, {{5, 2, 7}}, {{{{'L', 1}, {'A', 1}}}, {}}),
            "i j k, l -> i l k | sum j");
  EXPECT_EQ(factors(gather, {{5, 6, 7}, {2}, {2}}, {{2, 7}}, {{{{'L', 0}, {'A', 2}}}, {}}),
            "i j k, l, l -> l k | sum i j");
  EXPECT_THAT(refusal(gather, {{5, 6, 7}, {2}}, {{5, 2, 7}}), HasSubstr("how many dims group L has"));
}

TEST(RuleText, dims_lie_where_params_say) {
  const char* matmul = "B.. M.. K.., B.. K.. N.. -> B.. M.. N.. | sum K";
  // a (k, b, m) . b (n, k, b)
  const auto rule =
      RuleText(matmul).on(std::vector<Shape>{{4, 2, 3}, {5, 4, 2}}, std::vector<Shape>{{2, 3, 5}},
                          {{{{'B', 1}, {'K', 1}}}, {{1, 2, 0}, {2, 1, 0}}});
  EXPECT_EQ(to_string(rule), "k i j, l k i -> i j l | sum k");
  EXPECT_EQ(rule.factors[2], (Factor{4, FactorKind::reduce}));
}

TEST(RuleText, a_permutation_is_a_group_read_in_another_order) {
  EXPECT_EQ(factors("D.. -> D..", {{2, 3, 4}}, {{4, 2, 3}}, {{}, {{2, 0, 1}}}), "j k i -> i j k");
}

TEST(RuleText, reduced_dims_are_read_last) {
  EXPECT_EQ(factors("M.. K.. -> M.. | max K", {{2, 3, 4}}, {{3}}, {{{{'K', 2}}}, {{1, 0, 2}}}),
            "j i k -> i | max j k");
}

TEST(RuleText, braces_stand_for_any_number_of_operands) {
  EXPECT_EQ(factors("{D..} -> D..", {{4}, {4}, {4}}, {{4}}), "i, i, i -> i");
  EXPECT_EQ(factors("{D..} -> {D..}", {{4}, {4}}, {{4}, {4}}), "i, i -> i, i");
  EXPECT_EQ(factors("-> D..", {}, {{4, 5}}), " -> i j");
}

TEST(RuleText, one_group_alone_aligns_dims_from_the_last) {
  EXPECT_EQ(factors("{D..} -> D..", {{5}, {4, 1}}, {{4, 5}}), "j, i 1 -> i j");
}

TEST(RuleText, a_regrouping_finds_the_common_digits) {
  EXPECT_EQ(factors("(D..) -> (D..)", {{24, 5}}, {{4, 30}}), "(ij) k -> i (jk)");
}

TEST(RuleText, a_compound_dim_takes_one_size_from_params) {
  const char* conv = "n (g c) ~S.., (g o) c T.. -> n (g o) S.. | sum c | whole T";
  EXPECT_EQ(factors(conv, {{8, 6, 32}, {4, 3, 5}}, {{8, 4, 28}}, {{{{'g', 2}}}, {}}),
            "i (jk) l, (jm) k n -> i (jm) l | sum k | whole n");
}

TEST(RuleText, a_digit_of_one_value_is_left_out) {
  // With one group the channels need not be a multiple of the blocks.
  const char* conv = "n (g c) ~S.., (g o) c T.. -> n (g o) S.. | sum c | whole T";
  EXPECT_EQ(factors(conv, {{8, 3, 32}, {4, 3, 5}}, {{8, 4, 28}}, {{{{'g', 1}}}, {}}),
            "i k l, m k n -> i m l | sum k | whole n");
}

TEST(RuleText, a_dim_that_is_about_another_may_have_any_extent) {
  const auto rule = RuleText("~s -> s").on(std::vector<Shape>{{10}}, std::vector<Shape>{{4}});
  EXPECT_EQ(rule.factors, (std::vector<Factor>{{4, FactorKind::pass}}));
  EXPECT_EQ(rule.inputs[0], rule.outputs[0]);
  EXPECT_THAT(refusal("s -> s", {{10}}, {{4}}), HasSubstr("factor s is 10 and 4"));
}

TEST(RuleText, letters_of_an_operand_leave_its_groups_out) {
  const RuleText solve("B.. n n, B.. n c -> B.. n c | whole n");
  EXPECT_EQ(solve.letters(false, 0), "nn");
  EXPECT_EQ(solve.letters(true, 0), "nc");
  EXPECT_TRUE(solve.is_whole('n'));
  EXPECT_FALSE(solve.is_whole('c'));
}

TEST(RuleText, sentences_that_say_nothing_are_refused_when_they_are_read) {
  EXPECT_THAT(refusal("i j"), HasSubstr("sharding rule \"i j\": no '->'"));
  EXPECT_THAT(refusal("i k -> i"), HasSubstr("factor k is in no output: say 'sum' or 'whole'"));
  EXPECT_THAT(refusal("i -> i | sum i"), HasSubstr("factor i is reduced and in an output"));
  EXPECT_THAT(refusal("i -> i | whole k"), HasSubstr("'whole' names a factor that no operand has"));
  EXPECT_THAT(refusal("i k -> i | mean k"), HasSubstr("'mean' is no way to combine partial results"));
  EXPECT_THAT(refusal("(i j -> i j"), HasSubstr("does not start with a factor"));
  EXPECT_THAT(refusal("(i D..) -> i D.."), HasSubstr("a group stands in a compound dim"));
}

TEST(RuleText, shapes_that_do_not_fit_are_named) {
  EXPECT_THAT(refusal("B.. n -> B.. n", {{}}, {{}}), HasSubstr("shape () has too few dims"));
  EXPECT_THAT(refusal("B.. i, B.. i -> B.. i", {{2, 3}, {3}}, {{2, 3}}),
              HasSubstr("on (2, 3) (3,) -> (2, 3): operand 1 has 2 dims in the text"));
  EXPECT_THAT(refusal("i -> i", {{2}}, {{2}}, {{{{'k', 1}}}, {}}), HasSubstr("it has no k"));
}

}  // namespace
}  // namespace tessera
