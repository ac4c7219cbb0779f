// Output of debug::print and calls of debug::callback, eagerly and when a traced program runs.
#include <complex>
#include <map>
#include <sstream>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/tessera.hpp>

#include "support/errors.hpp"

namespace tessera::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class F> std::string printed(F f) {
  testing::internal::CaptureStdout();
  f();
  return testing::internal::GetCapturedStdout();
}
std::string once(const std::string& text) { return is_main_process() ? text : ""; }
Mesh ranks() { return make_mesh({device_count()}, {"x"}); }
Array split(const Array& x) { return device_put(x, ranks(), P("x")); }

// ---- the output ----

TEST(print, takes_whatever_can_be_streamed) {
  EXPECT_EQ(printed([] {
              debug::print("{} {} {} {}", Shape{2, 3}, float32, P("x", None), 'c');
            }),
            once("(2, 3) float32 P('x', None) c\n"));
  EXPECT_EQ(printed([] { debug::print("{}", make_mesh({device_count()}, {"x"})); }),
            once("Mesh('x': " + std::to_string(device_count()) + ")\n"));
  const auto sharding = printed([] { debug::print("{}", split(arange(4)).sharding()); });
  EXPECT_EQ(sharding.find("P('x')") != std::string::npos, is_main_process());
}
TEST(print, takes_pairs_tuples_vectors_and_maps_apart) {
  const Array x = split(array({3, 1, 2}));
  const std::map<std::string, Array> parts{{"a", x}, {"b", ones({})}};
  EXPECT_EQ(printed([&] { print("top", top_k(x, 2), parts); }),
            once("top ([3 2], [0 2]) [(a, [3 1 2]), (b, 1.0)]\n"));
  EXPECT_EQ(printed([&] {
              print(std::tuple(1, true, std::vector<Array>{x, x[0]}), Shape{2}, "c");
            }),
            once("(1, True, [[3 1 2], 3]) (2,) c\n"));
}
TEST(print, numbers_by_format) {
  EXPECT_EQ(printed([] {
              debug::print("{:.4f}|{:>8}|{:<6}|{:^7}|{:+d}|{:06.2f}", 2.0 / 3, 42, "ab", "mid", 7, -1.5);
            }),
            once("0.6667|      42|ab    |  mid  |+7|-01.50\n"));
  EXPECT_EQ(printed([] {
              debug::print("{:x} {:#b} {:.1%} {:*^9} {:.2e} {:>6}", 255, 5, 0.125, "hi", 12345.678, true);
            }),
            once("ff 0b101 12.5% ***hi**** 1.23e+04   True\n"));
  EXPECT_EQ(
      printed([] { debug::print("{:.1f} {}", std::complex<double>(1.25, -2), std::complex<float>(0, 1)); }),
      once("1.2-2.0j (0+1j)\n"));
  EXPECT_EQ(printed([] { debug::print("{} {} {:.3}", std::uint64_t{18446744073709551615U}, -3L, "abcdef"); }),
            once("18446744073709551615 -3 abc\n"));
}
TEST(print, of_an_array_the_format_holds_for_each_element) {
  EXPECT_EQ(printed([] {
              debug::print("{:.2f}", split(array({1.f, 2.5f, -0.125f})));
            }),
            once("[ 1.00  2.50 -0.12]\n"));
  EXPECT_EQ(printed([] { debug::print("{:>3}", arange(4).reshape(2, 2)); }),
            once("[[  0   1]\n [  2   3]]\n"));
  EXPECT_EQ(printed([] { debug::print("{:.3f}", sum(split(ones({8})))); }), once("8.000\n"));
  EXPECT_EQ(printed([] { debug::print("{:.0f}", zeros(2000)); }), once("[0 0 0 ... 0 0 0]\n"));
}
TEST(print, what_is_no_format_is_refused_with_the_line) {
  const auto text = test::error_of<ArgumentError>([] { debug::print("{:q}", 1); });
  EXPECT_THAT(text, AllOf(HasSubstr("has the format 'q'"), HasSubstr("as {:>8.3f}"),
                          HasSubstr("print_test.cpp:" + std::to_string(__LINE__ - 2))));
  EXPECT_THAT(test::error_of<ArgumentError>([] { debug::print("{:.3f}", "text"); }),
              HasSubstr("a format that its argument text cannot have"));
  EXPECT_THAT(test::error_of<ArgumentError>([] { debug::print("{:d}", 1.5); }), HasSubstr("cannot have"));
  EXPECT_THAT(test::error_of<ArgumentError>([] { debug::print("{:9999}", 1); }), HasSubstr("has the format"));
  EXPECT_THAT(test::error_of<ArgumentError>([] { debug::print("{x}", 1); }), HasSubstr("a single '{'"));
}
TEST(print, a_format_that_elements_cannot_have_is_refused_when_recorded) {
  const auto show = [](const Array& x) {
    debug::print("x {:d}", x);
    return x + 1;
  };
  const std::string line = "debug::print at print_test.cpp:" + std::to_string(__LINE__ - 3);
  const Array x = split(arange(7, float32));
  for (const auto& text : {test::error_of<ArgumentError>([&] { return show(x); }),
                           test::error_of<ArgumentError>([&] { return jit(show)(x); })})
    EXPECT_THAT(text,
                AllOf(HasSubstr(line), HasSubstr("'x {:d}' has a format that elements of float32 cannot")));
  EXPECT_EQ(printed([&] { eval(jit(show)(split(arange(3)))); }), once("x [0 1 2]\n"));
}

// ---- in a traced program ----

TEST(print, inside_jit_writes_values_each_time_it_runs) {
  const auto f = jit([](const Array& x) {
    debug::print("sum {:.1f} of {}", sum(x), x.shape());
    return x * 2;
  });
  const auto line = [](const char* value) { return once(std::string("sum ") + value + " of (4,)\n"); };
  EXPECT_EQ(printed([&] { f(split(arange(4.f))); }), line("6.0"));
  EXPECT_EQ(printed([&] { f(split(ones({4}))); }), line("4.0"));
  std::vector<float> values;
  printed([&] { values = to_vector<float>(f(split(ones({4})))); });
  EXPECT_THAT(values, ElementsAre(2, 2, 2, 2));
}
TEST(print, inside_jit_comes_in_the_order_of_the_program) {
  const auto f = jit([](const Array& x) {
    debug::print("first");
    debug::print("second {}", x);
    const Array y = x + 1;
    debug::print("third {}", y);
    return y;
  });
  EXPECT_EQ(printed([&] { f(split(arange(3))); }), once("first\nsecond [0 1 2]\nthird [1 2 3]\n"));
}
TEST(print, of_a_jitted_function_is_no_result_of_it) {
  const auto f = jit([](const Array& x) {
    debug::print("{}", x);
    return std::pair{x, x + 1};
  });
  const auto compiled = f.lower(arange(2)).compile();
  EXPECT_EQ(compiled.output_shardings().size(), 2U);
  EXPECT_EQ(compiled.explanation().outputs.size(), 2U);
  EXPECT_EQ(printed([&] { f.lower(arange(2)); }), "") << "lowering runs nothing";
}
TEST(print, inside_compiled_loops_writes_in_every_step) {
  const auto counted = jit([](const Array& x) {
    return fori_loop(
        0, 10,
        [](const Array& i, const Array& value) {
          debug::print("{}: {}", i, value);
          return value + 1;
        },
        x);
  });
  std::string expected;
  for (int i = 0; i < 10; ++i) expected += std::to_string(i) + ": " + std::to_string(i + 5) + "\n";
  EXPECT_EQ(printed([&] { EXPECT_EQ(item<int>(counted(array({5})(0))), 15); }), once(expected));
  const auto until = jit([](const Array& x) {
    return while_loop([](const Array& value) { return value < 3; },
                      [](const Array& value) {
                        debug::print("at {}", value);
                        return value + 1;
                      },
                      x);
  });
  EXPECT_EQ(printed([&] { EXPECT_EQ(item<int>(until(array({1})(0))), 3); }), once("at 1\nat 2\n"));
  const auto scanned = jit([](const Array& x, const Array& xs) {
    return scan(
        [](const Array& carry, const Array& entry) {
          debug::print("{}+{}", carry, entry);
          return std::pair{carry + entry, carry};
        },
        x, xs);
  });
  expected.clear();
  for (int i = 0, carry = 0; i < 9; carry += i++)
    expected += std::to_string(carry) + "+" + std::to_string(i) + "\n";
  EXPECT_EQ(printed([&] { EXPECT_EQ(item<int>(scanned(array({0})(0), arange(9)).first), 36); }),
            once(expected));
}
TEST(print, inside_a_branch_writes_when_the_branch_is_taken) {
  const auto f = jit([](const Array& x) {
    debug::print("before");
    const Array y = cond(
        x > 0,
        [](const Array& value) {
          debug::print("positive {}", value);
          return value;
        },
        [](const Array& value) { return -value; }, x);
    debug::print("after {}", y);
    return y;
  });
  EXPECT_EQ(printed([&] { f(array({2})(0)); }), once("before\npositive 2\nafter 2\n"));
  EXPECT_EQ(printed([&] { f(array({-2})(0)); }), once("before\nafter 2\n"));
}
TEST(print, in_a_condition_is_refused) {
  const auto f = jit([](const Array& x) {
    return while_loop(
        [](const Array& value) {
          debug::print("{}", value);
          return value < 3;
        },
        [](const Array& value) { return value + 1; }, x);
  });
  EXPECT_THAT(test::error_of<ArgumentError>([&] { f(array({1})(0)); }), HasSubstr("the condition prints"));
}
TEST(print, inside_shard_map_writes_every_ranks_block_with_its_rank) {
  const int n = device_count();
  const auto f = [](const Array& x) {
    debug::print("has {}", x);
    return x;
  };
  const auto mapped = shard_map(f, ranks(), P("x"), P("x"));
  const auto own = [](int first) {
    return "[rank " + std::to_string(process_index()) + "] has [" + std::to_string(first) + " " +
           std::to_string(first + 1) + "]\n";
  };
  const Array x = split(arange(2 * n));
  EXPECT_EQ(printed([&] { eval(mapped(x)); }), own(2 * process_index()));
  EXPECT_EQ(printed([&] { jit(mapped)(x + 1); }), own(2 * process_index() + 1));
}
TEST(print, inside_a_loop_inside_shard_map) {
  const auto mapped = shard_map(
      [](const Array& x) {
        return fori_loop(
            0, 9,
            [](const Array& i, const Array& value) {
              debug::print("{}", i + sum(value));
              return value;
            },
            x);
      },
      ranks(), P("x"), P("x"));
  std::string expected;
  for (int i = 0; i < 9; ++i)
    expected +=
        "[rank " + std::to_string(process_index()) + "] " + std::to_string(i + process_index()) + "\n";
  EXPECT_EQ(printed([&] { jit(mapped)(split(arange(device_count()))); }), expected);
}
TEST(print, inside_vmap_writes_once_per_example) {
  const auto f = vmap([](const Array& x) {
    debug::print("row {}", x);
    return sum(x);
  });
  const std::string rows = "row [0 1]\nrow [2 3]\nrow [4 5]\n";
  EXPECT_EQ(printed([&] { eval(f(arange(6).reshape(3, 2))); }), once(rows));
  EXPECT_EQ(printed([&] { jit(f)(arange(6).reshape(3, 2)); }), once(rows));
}
TEST(print, inside_grad_writes_the_values) {
  const auto loss = [](const Array& x) {
    debug::print("x is {}", x);
    return sum(x * x);
  };
  EXPECT_EQ(printed([&] { eval(grad(loss)(array({1.f, 2.f}))); }), once("x is [1. 2.]\n"));
  EXPECT_EQ(printed([&] { eval(jit(grad(loss))(array({1.f, 2.f}))); }), once("x is [1. 2.]\n"));
}
TEST(print, changes_no_value) {
  const auto f = [](const Array& x) { return sum(sin(x)) * 3; };
  const auto g = jit([&](const Array& x) {
    debug::print("{}", x);
    return f(x);
  });
  const Array x = split(arange(7.f));
  std::vector<float> value;
  printed([&] { value = to_vector<float>(g(x)); });
  EXPECT_EQ(value, to_vector<float>(jit(f)(x)));
}

// ---- callbacks ----

TEST(callback, is_called_with_host_arrays) {
  std::vector<float> seen;
  const auto see = [&](const HostArray& x, const HostArray& y) {
    for (const float v : x.as<float>()) seen.push_back(v);
    for (const float v : y.as<float>()) seen.push_back(v);
  };
  debug::callback(see, split(arange(3.f)), Array(5.f));
  EXPECT_EQ(seen, is_main_process() ? (std::vector<float>{0, 1, 2, 5}) : std::vector<float>{});
  seen.clear();
  const auto f = jit([&](const Array& x) {
    debug::callback(see, x, sum(x));
    return x;
  });
  f(split(arange(3.f)));
  f(split(ones({3})));
  EXPECT_EQ(seen, is_main_process() ? (std::vector<float>{0, 1, 2, 3, 1, 1, 1, 3}) : std::vector<float>{});
}
TEST(callback, inside_shard_map_sees_each_ranks_block) {
  std::vector<int> seen;
  const auto f = shard_map(
      [&](const Array& x) {
        debug::callback([&](const HostArray& block) { seen.push_back(block.as<int>()[0]); }, x);
        return x;
      },
      ranks(), P("x"), P("x"));
  jit(f)(split(arange(device_count())));
  EXPECT_THAT(seen, ElementsAre(process_index()));
}

}  // namespace
}  // namespace tessera::test
