// while_loop in compiled functions: runs until all examples are done, with tangents.
#include "control/loops.hpp"

namespace tessera::test {
namespace {

TEST(While, compiled_is_the_loop_outside) {
  const Array x = spread({10}), y = spread({10}, 0, 1, 5);
  for (const auto& placed : layouts_of(x)) expect_close(jit(grow)(placed, y), grow(x, y), "while_loop");
}

TEST(While, mapped_runs_until_all_examples_are_done) {
  const Array x = spread({9, 4}, 0.1, 3), y = spread({4}, 0, 0.1, 5);
  std::vector<Array> rows;
  for (int i = 0; i < 9; ++i) rows.push_back(grow(x(i), y));
  for (const auto& placed : layouts_of(x)) {
    const auto f = [&](const Array& v) { return grow(v, y); };
    expect_close(vmap(f)(placed), stack(rows, 0), "vmap");
    expect_close(jit([&](const Array& a) { return vmap(f)(a); })(placed), stack(rows, 0), "vmap in jit");
  }
}

TEST(While, tangents_go_with_the_values) {
  const Array x = spread({6}, 0.5, 1), y = spread({6}, 0, 0.1, 5), t = spread({6}, -1, 1, 8);
  const auto pushed = jit([&](const Array& a, const Array& da) {
    return jvp([&](const Array& v) { return grow(v, y); }, std::tuple(a), std::tuple(da)).second;
  })(x, t);
  const double h = 1e-6;
  expect_close(pushed, (grow(x + h * t, y) - grow(x - h * t, y)) / (2 * h), "finite differences", 1e-6);
}

TEST(While, values_and_tangents_are_one_loop) {
  const auto f = jit([](const Array& x, const Array& t) {
    return jvp([](const Array& v) { return grow(v, v); }, std::tuple(x), std::tuple(t));
  });
  const auto text = f.lower(spread({6}, 0.5, 1), spread({6})).compile().as_text();
  EXPECT_EQ(text.find("  while:"), text.rfind("  while:")) << text;
}

TEST(While, has_no_gradient_and_says_what_has) {
  try {
    jit(grad([](const Array& x) { return sum(grow(x, x)); }))(spread({6}, 0.5, 1));
    FAIL() << "no error";
  } catch (const ArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("scan or fori_loop"));
  }
}

}  // namespace
}  // namespace tessera::test
