// Compiled functions called with arguments in other layouts.
#include <tessera/ops.hpp>
#include <tessera/random.hpp>
#include <tessera/runtime.hpp>
#include <tessera/transforms.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "support/errors.hpp"

namespace tessera::test {
namespace {

// As where nothing is compiled: rounded to float32, 0.1 would be 1e-9 off.
TEST(Jit, numbers_beside_arrays_of_float64_are_float64) {
  const auto times = jit([](const Array& x, const Array& c) { return x * c; });
  const Array x = array({0.1, 0.3});
  EXPECT_EQ(to_vector<double>(times(x, 0.1)), (std::vector<double>{0.1 * 0.1, 0.3 * 0.1}));
  EXPECT_EQ(times(astype(x, float32), 0.1).dtype(), float32);
  EXPECT_EQ(jit([](const Array& c) { return c; })(0.1).dtype(), float32);
  const auto sum_of = jit([](const Array& x, const Array& c) { return x + c; });
  constexpr std::int64_t large = 3'000'000'000;
  EXPECT_EQ(to_vector<std::int64_t>(sum_of(array({large, std::int64_t{1}}), large)),
            (std::vector<std::int64_t>{2 * large, large + 1}));
}

TEST(Jit, a_compiled_function_places_uncommitted_arguments_and_refuses_committed_ones_elsewhere) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array x = device_put(arange(12), mesh, P("x"));
  const auto compiled = jit([](Array a) { return a + 1; }).lower(x).compile();
  const Array y = compiled(arange(12));
  EXPECT_EQ(y.sharding(), x.sharding());
  EXPECT_EQ(item<int>(y(11)), 12);
  EXPECT_THROW(compiled(arange(13)), ArgumentError);
  if (device_count() > 1) {
    EXPECT_THROW(compiled(device_put(arange(12), mesh, P())), ShardingError);
  }
}

TEST(Jit, calls_that_send_nothing_agree_with_the_next_that_does) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  Array x = device_put(zeros({2 * device_count()}), mesh, P("x"));
  const auto next = jit([](Array a) { return a + 1; });
  for (int i = 0; i < 300; ++i) {
    x = next(x);
    eval(x * 2);
  }
  EXPECT_EQ(item<float>(sum(x)), 600.f * static_cast<float>(device_count()));
  if (device_count() == 1) return;
  if (process_index() == 0) x = next(x);  // one more call than on the other ranks
  EXPECT_THROW((void)item<float>(sum(x)), DisagreementError);
  EXPECT_EQ(item<float>(sum(x)), 600.f * static_cast<float>(device_count()) + 2);
}

TEST(Jit, an_array_that_left_its_function_is_an_error_when_it_is_printed_or_read) {
  Array leaked;
  const auto f = jit([&](const Array& a) {
    leaked = a + 1;
    return a * 2;
  });
  EXPECT_EQ(to_vector<float>(f(ones(2))), (std::vector<float>{2, 2}));
  for (const auto& use :
       std::vector<std::function<void()>>{[&] { static_cast<void>(to_string(leaked * 2)); },
                                          [&] { static_cast<void>(item<float>(sum(leaked))); },
                                          [&] { static_cast<void>(to_vector<float>(leaked)); }})
    EXPECT_THAT(error_of<ArgumentError>(use),
                testing::AllOf(testing::HasSubstr("was made while jit at jit_test.cpp:"),
                               testing::HasSubstr("traced its function, which has ended"),
                               testing::HasSubstr("Return it from the function")));
}

// How often the text of the compiled function names what is looked for.
int count_in_plan(const std::function<Array(Array)>& f, const Array& x, const std::string& wanted) {
  const std::string text = jit(f).lower(x).compile().as_text();
  int found = 0;
  for (auto at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) ++found;
  return found;
}

TEST(Jit, computes_once_what_two_formulas_compute_with_equal_numbers) {
  const Array x = arange(4.f);
  const auto twice = [](Array a) { return exp(a * 0.5) + cos(exp(a * 0.5)); };
  EXPECT_EQ(count_in_plan(twice, x, "exp"), 1);
  EXPECT_EQ(count_in_plan([](Array a) { return exp(a * 0.0) + cos(exp(a * -0.0)); }, x, "exp"), 2);
  EXPECT_EQ(to_vector<float>(jit(twice)(x)), to_vector<float>(twice(x)));
}

TEST(Jit, a_chain_of_many_different_numbers_is_one_fusion) {
  const auto f = [](Array a) {
    for (int n = 1; n <= 40; ++n) a = a * (1 + 0.01 * n);
    return a;
  };
  const Array x = arange(4.f);
  EXPECT_EQ(count_in_plan(f, x, "fusion["), 1);
  EXPECT_EQ(count_in_plan(f, x, " multiply("), 0);
  EXPECT_EQ(to_vector<float>(jit(f)(x)), to_vector<float>(f(x)));
}

// Dims of 1 come between ops where they are added, dropped or moved; 7 rows are uneven blocks of 3 ranks.
TEST(Jit, a_chain_goes_on_through_dims_of_one) {
  const auto line = make_mesh({device_count()}, {"x"});
  const Array x = device_put(reshape(arange(42.f), {7, 1, 6}) * 0.05, line, P("x"));
  const Array row = reshape(arange(6.f), {1, 1, 6});
  const auto f = [row](Array a) {
    const Array flat = reshape(sin(a + row), {7, 6});
    return reshape(-flat, {7, 1, 6, 1}) * reshape(flat * 2.0, {7, 1, 6, 1});
  };
  EXPECT_EQ(count_in_plan(f, x, "fusion[add+sin+negative+multiply+multiply]"), 1);
  const Array y = jit(f)(x);
  EXPECT_EQ(y.shape(), (Shape{7, 1, 6, 1}));
  const auto found = to_vector<float>(y);
  for (int i = 0; i < 42; ++i) {
    const float s = std::sin(static_cast<float>(i) * 0.05f + static_cast<float>(i % 6));
    EXPECT_NEAR(found[static_cast<std::size_t>(i)], -2 * s * s, 1e-5) << i;
  }
  // A result that is read as it is, too, is stored once.
  const auto read_twice = [](Array a) { return reshape(exp(a), {7, 6}) + sum(exp(a), 1); };
  EXPECT_EQ(count_in_plan(read_twice, x, " exp("), 1);
}

TEST(Jit, x_minus_0_and_x_divided_by_1_are_x_bit_by_bit) {
  const Array x = array({-0.f, 0.f, 1.5f, -2.f});
  const auto f = [](Array a) { return copysign(1.0, (a - 0.0) / 1.0 * 1.0) + (a + 0.0); };
  EXPECT_EQ(count_in_plan(f, x, "divide"), 0);
  EXPECT_EQ(count_in_plan(f, x, "subtract"), 0);
  EXPECT_EQ(to_vector<float>(jit(f)(x)), (std::vector<float>{-1, 1, 2.5, -3}));
  const auto same = [](Array a) { return a / 1.0; };
  EXPECT_EQ(to_vector<float>(jit(same)(x)), to_vector<float>(x));
  EXPECT_EQ(jit(same)(arange(3)).dtype(), float32);
}

// A function whose gradient reads |x| and a mask of the forward pass.
Array with_gradient(const Array& x) {
  const auto f = [](Array v) { return sum(where(abs(v) < 1.0, exp(abs(v) * 0.5), cos(abs(v)))); };
  return grad(f)(x) + f(x);
}

TEST(Jit, masks_and_absolute_values_that_two_chains_read_are_computed_in_both) {
  const Array x = random::normal(random::key(3), {11, 7});
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  for (const Array& operand : {x, device_put(x, mesh, P("x"))}) {
    EXPECT_EQ(count_in_plan(with_gradient, operand, " abs("), 0);
    EXPECT_EQ(count_in_plan(with_gradient, operand, " less("), 0);
    EXPECT_EQ(to_vector<float>(jit(with_gradient)(operand)), to_vector<float>(with_gradient(operand)));
  }
}

TEST(Jit, a_result_that_is_asked_for_or_that_another_op_reads_is_computed_once) {
  const Array x = random::normal(random::key(4), {6, 6});
  const auto f = [](Array v) {
    const Array size = abs(v);
    return sum(exp(size)) * matmul(size, size) + cos(size);
  };
  EXPECT_EQ(count_in_plan(f, x, " abs("), 1);
  EXPECT_EQ(to_vector<float>(jit(f)(x)), to_vector<float>(f(x)));
}

TEST(Jit, keeps_the_signatures_that_were_used_last) {
  int traces = 0;
  const auto f = jit([&](Array a) {
    ++traces;
    return a * 2;
  });
  const auto of_size = [](int n) {
    const Array x = zeros({n});
    eval({x});
    return x;
  };
  const int many = static_cast<int>(detail::most_programs);
  const Array first = of_size(1), second = of_size(2);
  f(first), f(second);
  for (int n = 3; n <= many + 1;
       ++n) {  // one program too many evicts the second: the first is called repeatedly
    f(of_size(n));
    f(first);
  }
  EXPECT_EQ(traces, many + 1);
  f(first);
  f(of_size(many + 1));
  EXPECT_EQ(traces, many + 1);
  f(second);
  EXPECT_EQ(traces, many + 2);
}

}  // namespace
}  // namespace tessera::test
