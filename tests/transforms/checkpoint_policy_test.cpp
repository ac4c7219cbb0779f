// Policies of checkpoint: values, gradients, the plan, and what is kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/tessera.hpp>

#include <algorithm>
#include <source_location>

#include "support/text.hpp"

namespace tessera {
namespace {

using test::count;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

namespace policies = checkpoint_policies;

// Two products, one of them with a batch dim, and steps that are cheap to compute again.
Array block(const Array& x, const Array& w) {
  const Array scores = checkpoint_name(matmul(tanh(matmul(x, w)), w), "scores");
  return sum(
      exp(einsum("bij,bjk->bik", reshape(scores, {2, 4, 8}), reshape(sin(scores), {2, 8, 4})) * 0.01f));
}

const Array& operand() {
  static const Array x = sin(reshape(arange(0.f, 64.f), {8, 8}));
  return x;
}
template <class F> std::string plan_of(F f) {
  return jit(value_and_grad<0, 1>(f)).lower(zeros({8, 8}), zeros({8, 8})).compile().as_text();
}
template <class F> std::int64_t kept_bytes(F f) {
  return explain(grad<0, 1>(f), zeros({8, 8}), zeros({8, 8})).kept_bytes();
}

struct Case {
  const char* name;
  CheckpointPolicy policy;
};
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"nothing", policies::nothing_saveable},
      {"everything", policies::everything_saveable},
      {"dots", policies::dots_saveable},
      {"dots without batch", policies::dots_with_no_batch_dims_saveable},
      {"names", policies::save_only_these_names("scores", "others")},
      {"all but names", policies::save_anything_except_these_names("scores")}};
  return all;
}

TEST(CheckpointPolicy, changes_no_value_and_no_gradient) {
  const Array x = operand(), w = cos(operand());
  const auto [dx, dw] = grad<0, 1>(block)(x, w);
  for (const auto& [name, policy] : cases()) {
    const auto f = checkpoint(block, policy);
    EXPECT_FLOAT_EQ(item<float>(f(x, w)), item<float>(block(x, w))) << name;
    for (const bool is_jitted : {false, true}) {
      const auto [ex, ew] = is_jitted ? jit(grad<0, 1>(f))(x, w) : grad<0, 1>(f)(x, w);
      EXPECT_THAT(to_vector<float>(ex), Pointwise(FloatNear(1e-4f), to_vector<float>(dx))) << name;
      EXPECT_THAT(to_vector<float>(ew), Pointwise(FloatNear(1e-4f), to_vector<float>(dw))) << name;
    }
  }
}

// Chains end where values wait for others: one through a barrier would keep all of its operands until then.
TEST(CheckpointPolicy, a_chain_ends_where_values_wait_for_others) {
  const auto f = [](const Array& x) {
    const std::vector<Array> values = {exp(x), sin(x)};
    const auto later = detail::computed_after(values, values, std::source_location::current());
    return cos(later[0]) * later[1];
  };
  for (const std::int64_t rows : {8, 7}) {
    const Array x = reshape(arange(0.f, 8.f * static_cast<float>(rows)), {rows, 8}) * 0.01f;
    const std::string plan = jit(f).lower(x).compile().as_text();
    EXPECT_EQ(count(plan, "[exp"), 0) << plan;
    EXPECT_EQ(count(plan, "[cos+multiply]"), 1) << plan;
    EXPECT_EQ(to_vector<float>(jit(f)(x)), to_vector<float>(cos(exp(x)) * sin(x)));
  }
}

TEST(CheckpointPolicy, second_derivatives_and_batches_agree_too) {
  const Array x = operand(), w = cos(operand()), direction = sin(3 * operand());
  const auto slope = [&](const auto& f) {
    return [&, f](const Array& v) { return sum(grad(f)(v, w) * direction); };
  };
  const auto rows = [&](const auto& f) {
    const auto one = [&, f](const Array& scale) { return grad(f)(x * scale, w); };
    return vmap(one)(array({0.5f, 1.f, 1.5f}));
  };
  const auto second = to_vector<float>(grad(slope(block))(x)), batch = to_vector<float>(rows(block));
  for (const auto& [name, policy] : cases()) {
    EXPECT_THAT(to_vector<float>(grad(slope(checkpoint(block, policy)))(x)),
                Pointwise(FloatNear(1e-3f), second))
        << name;
    EXPECT_THAT(to_vector<float>(rows(checkpoint(block, policy))), Pointwise(FloatNear(1e-3f), batch))
        << name;
  }
}

TEST(CheckpointPolicy, computes_again_what_is_not_kept_and_nothing_else) {
  const auto dots = [](const auto& f) { return count(plan_of(f), "] dot"); };
  const int plain = dots(block);
  const auto with = [&](const CheckpointPolicy& policy) { return dots(checkpoint(block, policy)) - plain; };
  EXPECT_EQ(with(policies::everything_saveable), 0);
  EXPECT_EQ(with(policies::dots_saveable), 0);
  EXPECT_EQ(with(policies::save_anything_except_these_names("scores")), 0);
  EXPECT_EQ(with(policies::dots_with_no_batch_dims_saveable), 1);  // the last one, for exp
  EXPECT_EQ(with(policies::save_only_these_names("scores")), 2);   // also the first product, which tanh reads
  EXPECT_EQ(with(policies::nothing_saveable), 3);
}

TEST(CheckpointPolicy, explain_lists_what_is_kept) {
  const auto plan = explain(grad<0, 1>(checkpoint(block, policies::save_only_these_names("scores"))),
                            zeros({8, 8}), zeros({8, 8}));
  EXPECT_EQ(plan.kept_bytes(), 8 * 8 * 4);
  EXPECT_THAT(to_string(plan), HasSubstr("kept for the backward pass, besides arguments: 256 B"));
  EXPECT_EQ(std::count_if(plan.kept.begin(), plan.kept.end(), [](const auto& v) { return v.is_argument; }),
            2);
  EXPECT_EQ(kept_bytes(checkpoint(block)), 0);
  EXPECT_EQ(kept_bytes(checkpoint(block, policies::dots_saveable)), (64 + 64 + 32) * 4);
  EXPECT_GT(kept_bytes(checkpoint(block, policies::everything_saveable)),
            kept_bytes(checkpoint(block, policies::dots_saveable)));
  EXPECT_TRUE(explain(block, zeros({8, 8}), zeros({8, 8})).kept.empty());
}

TEST(CheckpointPolicy, a_function_that_records_something_else_is_refused) {
  int calls = 0;
  const auto f = [&calls](const Array& x) {
    return ++calls > 1 ? sum(matmul(x, matmul(x, x))) : sum(matmul(x, x));
  };
  try {
    (void)grad(checkpoint(f, policies::dots_saveable))(operand());
    FAIL() << "the second recording has one product more";
  } catch (const ArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("recorded other ops for the backward pass"));
  }
}

}  // namespace
}  // namespace tessera
