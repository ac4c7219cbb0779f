// fori_loop in compiled functions: a single body, its traffic and memory.
#include <tessera/debug.hpp>

#include "control/loops.hpp"
#include "types/buffer.hpp"

namespace tessera::test {
namespace {

TEST(Fori, compiled_is_the_loop_outside) {
  const Array x = spread({7, 5});
  const Array expected = relax(x);
  for (const auto& placed : layouts_of(x)) expect_close(jit(relax)(placed), expected, "fori_loop");
}

TEST(Fori, a_body_that_takes_a_number_is_one_loop_too) {
  const auto f = [](const Array& x) {
    return fori_loop(
        2, 30, [](int i, const Array& v) { return v + 1.0 / (i * i) * cos(v); }, x);
  };
  const Array x = spread({7, 5});
  const auto compiled = jit(f).lower(x).compile();
  EXPECT_THAT(compiled.as_text(), HasSubstr("28 times"));
  expect_close(compiled(x), f(x), "numbers");
}

TEST(Fori, steps_that_record_different_ops_are_unrolled) {
  const auto f = [](const Array& x) {
    return fori_loop(
        0, 12, [&](int i, const Array& v) { return i % 3 == 0 ? v + x(i) : v * 1.1; }, x(0));
  };
  const Array x = spread({12, 5});
  const auto compiled = jit(f).lower(x).compile();
  EXPECT_THAT(compiled.as_text(), Not(HasSubstr("times")));
  expect_close(compiled(x), f(x), "unrolled");
}

TEST(Fori, ten_thousand_steps_are_one_body) {
  const auto f = [](int steps) {
    return [steps](const Array& x) {
      return fori_loop(
          0, steps, [](const Array&, const Array& v) { return v * 0.999f + 0.001f * sum(v); }, x);
    };
  };
  const Array x = device_put(ones({1000}), line(), P("x"));
  const auto compiled = jit(f(10000)).lower(x).compile();
  const auto short_one = jit(f(20)).lower(x).compile();
  EXPECT_EQ(compiled.memory_analysis().peak_bytes, short_one.memory_analysis().peak_bytes);
  EXPECT_EQ(compiled.cost_analysis().communication_bytes,
            500 * short_one.cost_analysis().communication_bytes);
  EXPECT_EQ(compiled.cost_analysis().flops, 500 * short_one.cost_analysis().flops);
  const auto text = compiled.as_text();
  EXPECT_THAT(text, HasSubstr("10000 times"));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 20);
}

TEST(Fori, bytes_moved_are_bytes_predicted) {
  const auto f = jit([](const Array& x) {
    return fori_loop(
        0, 25, [](const Array&, const Array& v) { return v - 0.1 * mean(v); }, x);
  });
  const Array x = device_put(spread({1000}), line(), P("x"));
  const auto compiled = f.lower(x).compile();
  eval(compiled(x));
  const debug::CommStats stats;
  eval(compiled(x));
  SCOPED_TRACE(compiled.as_text() + to_string(compiled.explanation()));
  EXPECT_EQ(stats.bytes("all-reduce"), compiled.explanation().bytes("all-reduce"));
  if (device_count() == 1) return;
  EXPECT_EQ(compiled.explanation().calls("all-reduce"), 25);
  // One row of the table covers all steps, named by the user's line.
  EXPECT_THAT(to_string(compiled.explanation()), HasSubstr(", in 25 steps of fori_loop at fori_test.cpp:"));
  EXPECT_THAT(to_string(compiled.explanation()), HasSubstr("all-reduce ×25 "));
}

TEST(Fori, memory_does_not_grow_with_the_steps) {
  const auto peak_of = [](int steps) {
    const auto f = jit([steps](const Array& x) {
      return fori_loop(
          0, steps, [](const Array& i, const Array& v) { return v * 0.5f + sin(v) * i; }, x);
    });
    const Array x = device_put(ones({1 << 16}), line(), P("x"));
    eval(f(x));
    release_pooled_memory();
    const auto before = memory_use().live_bytes;
    reset_peak_memory();
    eval(f(x));
    return memory_use().peak_bytes - before;
  };
  const auto block = (std::int64_t{1} << 18) / device_count() + 4096;
  EXPECT_LE(peak_of(1000), 4 * block);
  EXPECT_LE(peak_of(1000), peak_of(10) + 4096);
}

TEST(Fori, is_planned_on_meshes_that_do_not_exist) {
  const Mesh mesh = abstract_mesh({64, 64}, {"x", "y"});
  const Array x = device_put(zeros({8192, 8192}), mesh, P("x", "y")),
              w = device_put(zeros({8192, 8192}), mesh, P("y", None));
  const auto power = [](int steps) {
    return [steps](const Array& a, const Array& b) {
      return fori_loop(
          0, steps, [&](const Array&, const Array& v) { return tanh(matmul(v, b)); }, a);
    };
  };
  const auto long_one = explain(power(10000), x, w), short_one = explain(power(10), x, w);
  EXPECT_GT(short_one.bytes(), 0);
  EXPECT_EQ(long_one.cost.flops, 1000 * short_one.cost.flops);
  EXPECT_EQ(long_one.memory.peak_bytes, short_one.memory.peak_bytes);
  EXPECT_THAT(to_string(long_one), HasSubstr("in 10000 steps of"));
}

}  // namespace
}  // namespace tessera::test
