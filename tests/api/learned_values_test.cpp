// Values of a mesh on a part of the ranks, which its own ranks evaluate without the others.
#include <gmock/gmock.h>
#include <tessera/error.hpp>
#include <tessera/jit.hpp>
#include <tessera/tessera.hpp>

#include <algorithm>
#include <vector>

#include "support/errors.hpp"

namespace tessera {
namespace {

std::vector<Device> first_half() {
  auto half = devices();
  half.resize(std::max<std::size_t>(1, half.size() / 2));
  return half;
}
Mesh part() { return make_mesh({static_cast<int>(first_half().size())}, {"x"}, first_half()); }
Mesh everybody() { return make_mesh({device_count()}, {"w"}); }
bool is_member() { return process_index() < part().size(); }
template <class... A> void eval_on_part(const A&... x) {
  if (is_member()) eval(x...);
}
std::vector<float> counted(std::int64_t n, float by = 1, float plus = 0) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(static_cast<float>(i) * by + plus);
  return values;
}
Array on_part(std::int64_t n) { return device_put(arange(n, float32), part(), P("x")); }

TEST(LearnedValues, evaluated_by_its_own_ranks_alone_is_read_by_all) {
  for (const std::int64_t n : {8, 7}) {
    const Array y = on_part(n) * 2;
    eval_on_part(y);
    EXPECT_EQ(to_vector<float>(y), counted(n, 2));
    EXPECT_EQ(to_vector<float>(y + 1), counted(n, 2, 1));
  }
}

TEST(LearnedValues, whatever_else_is_read_and_whoever_has_evaluated_it) {
  const Array x = on_part(7), y = x * 2, z = y + 1, other = x * 3;
  eval_on_part(y);
  eval(other);
  eval_on_part(sum(z));
  const Array all = device_put(z, everybody(), P("w")) + device_put(other, everybody(), P("w"));
  eval(all, y);
  EXPECT_EQ(to_vector<float>(all), counted(7, 5, 1));
  EXPECT_EQ(to_vector<float>(z), counted(7, 2, 1));
}

TEST(LearnedValues, requested_together_with_a_value_of_all_ranks) {
  const Array y = on_part(6) * 2, w = device_put(arange(5, float32), everybody(), P("w")) + 1;
  eval_on_part(y);
  eval(y, w);
  EXPECT_EQ(to_vector<float>(w), counted(5, 1, 1));
  EXPECT_EQ(to_vector<float>(y), counted(6, 2));
}

TEST(LearnedValues, of_several_parts_are_learned_in_one_exchange) {
  auto rest = devices();
  if (rest.size() > 1) rest.erase(rest.begin());
  const Mesh first({devices()[0].id}, {"x"});
  const Mesh others = make_mesh({static_cast<int>(rest.size())}, {"x"}, rest);
  const Array a = device_put(arange(7, float32), first, P("x")) + 1,
              b = device_put(arange(7, float32), others, P("x")) * 2;
  if (process_index() == 0)
    eval(a);
  else
    eval(b);
  const Array joined = device_put(a, everybody(), P("w")) + device_put(b, everybody(), P("w"));
  EXPECT_EQ(to_vector<float>(joined), counted(7, 3, 1));
}

TEST(LearnedValues, in_a_loop_of_steps_on_the_part) {
  Array x = on_part(7);
  for (int step = 0; step < 12; ++step) {
    x = x + 1;
    eval_on_part(x);
    if (step % 4 == 3) {
      EXPECT_EQ(to_vector<float>(x), counted(7, 1, static_cast<float>(step + 1)));
    }
  }
}

TEST(LearnedValues, as_arguments_of_compiled_functions) {
  const Array y = on_part(7) * 2;
  eval_on_part(y);
  const auto f = jit([](const Array& a, const Array& b) { return device_put(a, everybody(), P("w")) + b; });
  EXPECT_EQ(to_vector<float>(f(y, arange(7, float32))), counted(7, 3));
  EXPECT_EQ(to_vector<float>(f(y + 1, arange(7, float32) * 2)), counted(7, 4, 1));
}

TEST(LearnedValues, that_have_failed_raise_on_all_ranks) {
  const Array bad = linalg::cholesky(device_put(eye(8) * -1, part(), P("x")));
  EXPECT_EQ(test::error_or<LinAlgError>("", [&] { eval_on_part(bad); }).empty(), !is_member());
  EXPECT_THAT(test::error_or<LinAlgError>("", [&] { to_host(bad); }), testing::HasSubstr("cholesky"));
}

TEST(LearnedValues, that_a_compiled_function_captures) {
  const Array y = on_part(7) * 2, z = y + 1;
  eval_on_part(y);
  const auto f = [&](const Array& a) { return device_put(y, everybody(), P("w")) + a; };
  const auto g = jit(f);
  EXPECT_EQ(to_vector<float>(g(arange(7, float32))), counted(7, 3));
  EXPECT_EQ(to_vector<float>(g(arange(7, float32) + 1)), counted(7, 3, 1)) << "the same program again";
  const auto h = jit([&](const Array& a) { return f(a) * 2 + device_put(z, everybody(), P("w")); });
  const auto lowered = h.lower(arange(7, float32));
  const auto first = lowered.compile(), second = lowered.compile();  // two programs of one trace
  eval_on_part(z);
  EXPECT_EQ(to_vector<float>(h(arange(7, float32))), counted(7, 8, 1));
  EXPECT_EQ(to_vector<float>(first(arange(7, float32))), counted(7, 8, 1));
  EXPECT_EQ(to_vector<float>(second(arange(7, float32))), counted(7, 8, 1));
}

TEST(LearnedValues, that_a_compiled_function_captures_beside_donated_and_split_arguments) {
  const Array y = on_part(5) * 3;
  eval_on_part(y);
  const auto step = jit(
      [&](const Array& a) {
        return fori_loop(
            0, 3, [&](const Array&, const Array& b) { return b + device_put(y, everybody(), P("w")); }, a);
      },
      {.donate_argnums = {0}});
  Array a = device_put(arange(5, float32), everybody(), P("w"));
  for (int i = 0; i < 3; ++i) a = step(a);
  EXPECT_EQ(to_vector<float>(a), counted(5, 28));
}

TEST(LearnedValues, that_have_failed_and_are_captured_raise_on_all_ranks) {
  const Array bad = linalg::cholesky(device_put(eye(8) * -1, part(), P("x")));
  EXPECT_EQ(test::error_or<LinAlgError>("", [&] { eval_on_part(bad); }).empty(), !is_member());
  const auto f = jit([&](const Array& a) { return device_put(bad, everybody(), P("w")) + a; });
  EXPECT_THAT(test::error_or<LinAlgError>("",
                                          [&] {
                                            eval(f(ones({8, 8})));
                                          }),
              testing::HasSubstr("cholesky"));
}

TEST(LearnedValues, do_not_hide_that_ranks_compile_different_functions) {
  if (device_count() == 1) GTEST_SKIP() << "one rank agrees with itself";
  const Array y = on_part(7) * 2;
  eval_on_part(y);
  const float mine = process_index() == 0 ? 1.f : 2.f;
  const auto f = jit([&](const Array& a) { return device_put(y, everybody(), P("w")) + a * mine; });
  test::expect_error<DisagreementError>([&] { f(arange(7, float32)); },
                                        {"the ranks disagree on what comes next"});
}

TEST(LearnedValues, do_not_hide_that_ranks_do_different_things) {
  if (device_count() == 1) GTEST_SKIP() << "one rank agrees with itself";
  const Array y = on_part(7) * 2;
  eval_on_part(y);
  const Array mine = y + (process_index() == 0 ? 1.f : 2.f);
  test::expect_error<DisagreementError>([&] { to_host(mine); }, {"the ranks disagree on what comes next"});
  EXPECT_EQ(to_vector<float>(y), counted(7, 2));
}

}  // namespace
}  // namespace tessera
