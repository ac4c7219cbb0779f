#include "kernels/elementwise/elementwise.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "kernels/values.hpp"

namespace tessera::kernels {
namespace {

using testing::edges;
using testing::find_map;
using testing::map_named;
using testing::same;
using testing::Stored;

// Every pair of the dtype's edge values, as two operand arrays.
template <class T> struct Pairs {
  std::vector<Stored<T>> a, b;
  Pairs() {
    for (const T x : edges<T>())
      for (const T y : edges<T>()) a.push_back(x), b.push_back(y);
  }
  std::int64_t size() const { return static_cast<std::int64_t>(a.size()); }
};

template <class T> std::string text(T x) {
  if constexpr (testing::is_complex_type<T>)
    return std::to_string(x.real()) + "+" + std::to_string(x.imag()) + "i";
  else
    return std::to_string(+x);
}

template <class T, class R, class F> void expect_unary(std::string_view op, F reference) {
  const MapFn fn = find_map(op, dtype_of<T>());
  ASSERT_NE(fn, nullptr) << op << " " << name(dtype_of<T>());
  ASSERT_EQ(map_named(op)->result(dtype_of<T>()), dtype_of<R>()) << op;
  const Pairs<T> pairs;
  std::vector<Stored<R>> out(pairs.a.size());
  const void* in[] = {pairs.a.data()};
  fn(in, out.data(), pairs.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const R expected = reference(static_cast<T>(pairs.a[i]));
    ASSERT_TRUE(same<R>(out[i], expected)) << op << " " << name(dtype_of<T>()) << "(" << text(pairs.a[i])
                                           << ") = " << text(out[i]) << ", not " << text(expected);
  }
}

template <class T, class R, class F> void expect_binary(std::string_view op, F reference) {
  const MapFn fn = find_map(op, dtype_of<T>());
  ASSERT_NE(fn, nullptr) << op << " " << name(dtype_of<T>());
  ASSERT_EQ(map_named(op)->result(dtype_of<T>()), dtype_of<R>()) << op;
  ASSERT_EQ(map_named(op)->arity(), 2) << op;
  const Pairs<T> pairs;
  std::vector<Stored<R>> out(pairs.a.size());
  const void* in[] = {pairs.a.data(), pairs.b.data()};
  fn(in, out.data(), pairs.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const R expected = reference(static_cast<T>(pairs.a[i]), static_cast<T>(pairs.b[i]));
    ASSERT_TRUE(same<R>(out[i], expected))
        << op << " " << name(dtype_of<T>()) << "(" << text(pairs.a[i]) << ", " << text(pairs.b[i])
        << ") = " << text(out[i]) << ", not " << text(expected);
  }
}

template <class F> void for_integers(F f) {
  f(std::int8_t{}), f(std::int16_t{}), f(std::int32_t{}), f(std::int64_t{}), f(std::uint8_t{}),
      f(std::uint16_t{}), f(std::uint32_t{}), f(std::uint64_t{});
}
template <class F> void for_floats(F f) { f(float{}), f(double{}); }

// 128 bits hold every exact result of two 64-bit integers.
using Wide = __int128;

TEST(integer_maps, arithmetic_wraps_modulo_two_to_the_width) {
  for_integers([]<class T>(T) {
    expect_binary<T, T>("add", [](T a, T b) { return static_cast<T>(Wide{a} + b); });
    expect_binary<T, T>("subtract", [](T a, T b) { return static_cast<T>(Wide{a} - b); });
    expect_binary<T, T>("multiply", [](T a, T b) {
      return static_cast<T>(static_cast<unsigned __int128>(Wide{a}) *
                            static_cast<unsigned __int128>(Wide{b}));
    });
    expect_unary<T, T>("negative", [](T a) { return static_cast<T>(-Wide{a}); });
    expect_unary<T, T>("abs", [](T a) { return static_cast<T>(a < 0 ? -Wide{a} : Wide{a}); });
    expect_unary<T, T>("square", [](T a) {
      return static_cast<T>(static_cast<unsigned __int128>(Wide{a}) *
                            static_cast<unsigned __int128>(Wide{a}));
    });
  });
}

TEST(integer_maps, division_rounds_down_and_division_by_zero_gives_zero) {
  for_integers([]<class T>(T) {
    const auto floor_divide = [](T a, T b) {
      if (b == 0) return Wide{0};
      const Wide quotient = Wide{a} / b;
      return quotient * b != a && ((a < 0) != (b < 0)) ? quotient - 1 : quotient;
    };
    expect_binary<T, T>("floor_divide", [&](T a, T b) { return static_cast<T>(floor_divide(a, b)); });
    expect_binary<T, T>("remainder",
                        [&](T a, T b) { return b == 0 ? T(0) : static_cast<T>(a - floor_divide(a, b) * b); });
  });
}

TEST(integer_maps, shifts_by_the_width_or_more_and_by_negative_counts_are_defined) {
  for_integers([]<class T>(T) {
    constexpr int width = 8 * sizeof(T);
    expect_binary<T, T>("bitwise_left_shift", [](T a, T n) {
      return n < 0 || n >= T(width) ? T(0) : static_cast<T>(static_cast<unsigned __int128>(Wide{a}) << n);
    });
    expect_binary<T, T>("bitwise_right_shift", [](T a, T n) {
      if (n < 0 || n >= T(width)) return a < 0 ? static_cast<T>(-1) : T(0);
      return static_cast<T>(Wide{a} >> n);
    });
  });
}

TEST(integer_maps, power_wraps_and_negative_exponents_give_zero_except_of_one) {
  for_integers([]<class T>(T) {
    expect_binary<T, T>("power", [](T a, T n) {
      if (n < 0)
        return a == 1 ? T(1) : static_cast<Wide>(a) == -1 ? (n & 1 ? static_cast<T>(-1) : T(1)) : T(0);
      T result = 1;
      std::uint64_t steps = static_cast<std::uint64_t>(n);
      unsigned __int128 factor = static_cast<unsigned __int128>(Wide{a}), product = 1;
      for (; steps != 0; steps >>= 1, factor *= factor)
        if (steps & 1) product *= factor;
      result = static_cast<T>(product);
      return result;
    });
  });
}

TEST(integer_maps, powers_by_one_number_equal_those_among_others) {
  for_integers([]<class T>(T) {
    const std::vector<T> a = testing::random_values<T>(300, 1);
    for (const int exponent : {0, 1, 2, 3, 4}) {
      std::vector<T> n(a.size(), static_cast<T>(exponent)), by_one(a.size()), among_others(a.size());
      const void* in[] = {a.data(), n.data()};
      map<"power">.of(dtype_of<T>())(in, by_one.data(), 300);
      n.back() = 5;
      map<"power">.of(dtype_of<T>())(in, among_others.data(), 300);
      by_one.pop_back(), among_others.pop_back();
      EXPECT_EQ(by_one, among_others) << exponent;
    }
  });
}

TEST(integer_maps, the_rest) {
  for_integers([]<class T>(T) {
    expect_binary<T, T>("maximum", [](T a, T b) { return std::max(a, b); });
    expect_binary<T, T>("minimum", [](T a, T b) { return std::min(a, b); });
    expect_binary<T, T>("fmax", [](T a, T b) { return std::max(a, b); });
    expect_binary<T, T>("fmin", [](T a, T b) { return std::min(a, b); });
    expect_binary<T, T>("bitwise_and", [](T a, T b) { return static_cast<T>(a & b); });
    expect_binary<T, T>("bitwise_or", [](T a, T b) { return static_cast<T>(a | b); });
    expect_binary<T, T>("bitwise_xor", [](T a, T b) { return static_cast<T>(a ^ b); });
    expect_unary<T, T>("bitwise_invert", [](T a) { return static_cast<T>(~a); });
    expect_unary<T, T>("sign", [](T a) { return static_cast<T>((a > 0) - (a < 0)); });
    expect_unary<T, T>("relu", [](T a) { return std::max(a, T(0)); });
    expect_unary<T, T>("imag", [](T) { return T(0); });
    for (const char* op : {"copy", "floor", "ceil", "round", "trunc", "real", "conj"})
      expect_unary<T, T>(op, [](T a) { return a; });
    expect_unary<T, T>("reciprocal", [](T a) {
      return a == 1 ? T(1) : Wide{a} == -1 ? static_cast<T>(-1) : T(0);
    });
    expect_unary<T, bool>("isnan", [](T) { return false; });
    expect_unary<T, bool>("isinf", [](T) { return false; });
    expect_unary<T, bool>("isfinite", [](T) { return true; });
  });
}

TEST(maps, comparisons_and_logic_of_every_ordered_dtype) {
  const auto check = []<class T>(T) {
    expect_binary<T, bool>("equal", [](T a, T b) { return a == b; });
    expect_binary<T, bool>("not_equal", [](T a, T b) { return a != b; });
    expect_binary<T, bool>("less", [](T a, T b) { return a < b; });
    expect_binary<T, bool>("less_equal", [](T a, T b) { return a <= b; });
    expect_binary<T, bool>("greater", [](T a, T b) { return a > b; });
    expect_binary<T, bool>("greater_equal", [](T a, T b) { return a >= b; });
    expect_binary<T, bool>("logical_and", [](T a, T b) { return a != 0 && b != 0; });
    expect_binary<T, bool>("logical_or", [](T a, T b) { return a != 0 || b != 0; });
    expect_binary<T, bool>("logical_xor", [](T a, T b) { return (a != 0) != (b != 0); });
    expect_unary<T, bool>("logical_not", [](T a) { return a == 0; });
  };
  for_integers(check);
  for_floats(check);
  check(bool{});
}

TEST(bool_maps, plus_is_or_times_is_and) {
  expect_binary<bool, bool>("add", [](bool a, bool b) { return a || b; });
  expect_binary<bool, bool>("multiply", [](bool a, bool b) { return a && b; });
  expect_binary<bool, bool>("maximum", [](bool a, bool b) { return a || b; });
  expect_binary<bool, bool>("minimum", [](bool a, bool b) { return a && b; });
  expect_binary<bool, bool>("fmax", [](bool a, bool b) { return a || b; });
  expect_binary<bool, bool>("fmin", [](bool a, bool b) { return a && b; });
  expect_binary<bool, bool>("bitwise_xor", [](bool a, bool b) { return a != b; });
  expect_unary<bool, bool>("bitwise_invert", [](bool a) { return !a; });
  EXPECT_EQ(map<"subtract">.of(bool_), nullptr);
  EXPECT_EQ(map<"negative">.of(bool_), nullptr);
}

TEST(float_maps, arithmetic_is_ieee) {
  for_floats([]<class T>(T) {
    expect_binary<T, T>("add", [](T a, T b) { return a + b; });
    expect_binary<T, T>("subtract", [](T a, T b) { return a - b; });
    expect_binary<T, T>("multiply", [](T a, T b) { return a * b; });
    expect_binary<T, T>("divide", [](T a, T b) { return a / b; });
    expect_binary<T, T>("copysign", [](T a, T b) { return std::copysign(a, b); });
    expect_binary<T, T>("nextafter", [](T a, T b) { return std::nextafter(a, b); });
    expect_unary<T, T>("negative", [](T a) { return -a; });
    expect_unary<T, T>("abs", [](T a) { return std::abs(a); });
    expect_unary<T, T>("square", [](T a) { return a * a; });
    expect_unary<T, T>("reciprocal", [](T a) { return 1 / a; });
    expect_unary<T, T>("sqrt", [](T a) { return std::sqrt(a); });
    expect_unary<T, T>("rsqrt", [](T a) { return 1 / std::sqrt(a); });
    expect_unary<T, T>("floor", [](T a) { return std::floor(a); });
    expect_unary<T, T>("ceil", [](T a) { return std::ceil(a); });
    expect_unary<T, T>("trunc", [](T a) { return std::trunc(a); });
    expect_unary<T, T>("round", [](T a) { return std::nearbyint(a); });
    expect_unary<T, T>("relu", [](T a) { return a != a ? a : std::max(a, T(0)); });
    expect_unary<T, T>("sign", [](T a) { return a != a ? a : T((a > 0) - (a < 0)); });
    expect_unary<T, T>("imag", [](T) { return T(0); });
    for (const char* op : {"copy", "real", "conj"}) expect_unary<T, T>(op, [](T a) { return a; });
    expect_unary<T, bool>("isnan", [](T a) { return std::isnan(a); });
    expect_unary<T, bool>("isinf", [](T a) { return std::isinf(a); });
    expect_unary<T, bool>("isfinite", [](T a) { return std::isfinite(a); });
  });
}

TEST(float_maps, maximum_propagates_nan_and_fmax_prefers_numbers) {
  for_floats([]<class T>(T) {
    expect_binary<T, T>("maximum", [](T a, T b) { return a != a ? a : b != b ? b : std::max(a, b); });
    expect_binary<T, T>("minimum", [](T a, T b) { return a != a ? a : b != b ? b : std::min(a, b); });
    expect_binary<T, T>("fmax", [](T a, T b) { return b != b ? a : a > b ? a : b; });
    expect_binary<T, T>("fmin", [](T a, T b) { return b != b ? a : a < b ? a : b; });
  });
}

TEST(float_maps, the_sign_of_minus_zero_is_zero) {
  const double x[] = {-0.0, 0.0};
  double out[2] = {7, 7};
  const void* in[] = {x};
  map<"sign">.of(float64)(in, out, 2);
  for (const double value : out) EXPECT_TRUE(value == 0 && !std::signbit(value));
}

TEST(float_maps, remainder_has_the_sign_of_the_divisor) {
  for_floats([]<class T>(T) {
    // Python's rule, from the exact fmod.
    expect_binary<T, T>("remainder", [](T a, T b) {
      T rest = std::fmod(a, b);
      if (rest == 0) return std::copysign(T(0), b);
      return (rest < 0) != (b < 0) ? rest + b : rest;
    });
  });
  const double a[] = {7, -7, 7, -7, 5.5, 1, -1}, b[] = {3, 3, -3, -3, 0.5, INFINITY, INFINITY};
  const double quotients[] = {2, -3, -3, 2, 11, 0, -1}, rests[] = {1, 2, -2, -1, 0, 1, INFINITY};
  double out[7];
  const void* in[] = {a, b};
  map<"floor_divide">.of(float64)(in, out, 7);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(out[i], quotients[i]) << a[i] << " // " << b[i];
  map<"remainder">.of(float64)(in, out, 7);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(out[i], rests[i]) << a[i] << " % " << b[i];
}

// Quotients just below and above whole numbers, up to where whole numbers end, of both signs; in vectors with and
// without operands that fmod alone can treat.
TEST(float_maps, remainders_and_quotients_are_those_of_the_exact_fmod) {
  for_floats([]<class T>(T) {
    using Limits = std::numeric_limits<T>;
    std::mt19937_64 bits(3);
    std::vector<T> a, b;
    const auto add = [&](T x, T y) { a.push_back(x), b.push_back(y); };
    for (int round = 0; round < 40000; ++round) {
      const T y = std::ldexp(T(1) + static_cast<T>(bits() % 1000) / 1000, static_cast<int>(bits() % 40) - 20);
      const T q = static_cast<T>(bits() >> (64 - 1 - bits() % (Limits::digits + 1)));
      T x = q * y;
      if (round % 4 == 1) x = std::nextafter(x, T(0));
      if (round % 4 == 2) x = std::nextafter(x, Limits::max());
      if (round % 4 == 3) x = y * static_cast<T>(bits() % 1000) / 7;
      add(round % 3 == 0 ? -x : x, round % 5 == 0 ? -y : y);
    }
    const T special[] = {0,
                         T(-0.0),
                         1,
                         Limits::infinity(),
                         -Limits::infinity(),
                         Limits::quiet_NaN(),
                         Limits::max(),
                         Limits::min(),
                         Limits::denorm_min(),
                         T(-3) * Limits::denorm_min(),
                         T(5.5)};
    for (const T x : special)
      for (const T y : special)
        for (int lane = 0; lane < 17; ++lane) lane == 5 ? add(x, y) : add(T(7.5), T(2));
    for (const T x : special)
      for (const T y : special)
        for (int lane = 0; lane < 32; ++lane) add(x, y);
    const auto n = static_cast<std::int64_t>(a.size());
    std::vector<T> rest(a.size()), whole(a.size()), down(a.size());
    const void* in[] = {a.data(), b.data()};
    map<"fmod">.of(dtype_of<T>())(in, rest.data(), n);
    map<"remainder">.of(dtype_of<T>())(in, down.data(), n);
    map<"floor_divide">.of(dtype_of<T>())(in, whole.data(), n);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const T expected = std::fmod(a[i], b[i]);
      ASSERT_TRUE(testing::same(rest[i], expected)) << a[i] << " fmod " << b[i] << " = " << rest[i];
      const bool other_sign = (expected < 0) != (b[i] < 0);
      const T remainder = expected == 0 ? std::copysign(T(0), b[i]) : other_sign ? expected + b[i] : expected;
      ASSERT_TRUE(testing::same(down[i], remainder)) << a[i] << " % " << b[i] << " = " << down[i];
      T quotient = (a[i] - expected) / b[i];
      if (expected != 0 && other_sign) quotient -= 1;
      quotient = quotient == 0 ? std::copysign(T(0), a[i] / b[i]) : std::floor(quotient + T(0.5));
      if (b[i] == 0) quotient = a[i] / b[i];
      if (std::abs(quotient) < std::ldexp(T(1), Limits::digits - 2) || !std::isfinite(quotient)) {
        ASSERT_TRUE(testing::same(whole[i], quotient)) << a[i] << " // " << b[i] << " = " << whole[i];
      }
    }
  });
}

TEST(float_maps, exponents_are_those_of_frexp_and_ldexp) {
  for_floats([]<class T>(T) {
    using Limits = std::numeric_limits<T>;
    std::vector<T> x = {0,
                        T(-0.0),
                        1,
                        T(-1),
                        T(0.5),
                        Limits::infinity(),
                        -Limits::infinity(),
                        Limits::quiet_NaN(),
                        Limits::max(),
                        Limits::min(),
                        Limits::denorm_min(),
                        -3 * Limits::denorm_min(),
                        T(1e-30)};
    for (int e = Limits::min_exponent - Limits::digits; e <= Limits::max_exponent; ++e)
      for (const T m : {T(0.5), T(-0.75), T(1) - Limits::epsilon() / 2}) x.push_back(std::ldexp(m, e));
    const auto n = static_cast<std::int64_t>(x.size());
    std::vector<T> exponents(x.size()), products(x.size());
    const void* in[] = {x.data()};
    map<"frexp_exponent">.of(dtype_of<T>())(in, exponents.data(), n);
    for (std::size_t i = 0; i < x.size(); ++i) {
      int expected = 0;
      static_cast<void>(std::frexp(x[i], &expected));
      ASSERT_EQ(exponents[i], static_cast<T>(std::isfinite(x[i]) ? expected : 0)) << x[i];
    }
    for (const T shift : {T(0), T(1), T(-1), T(20), T(-30), T(120), T(-126), T(127), T(-140), T(300),
                          T(-1022), T(1023), T(5000), T(-5000)}) {
      const std::vector<T> by(x.size(), shift);
      const void* both[] = {x.data(), by.data()};
      map<"ldexp">.of(dtype_of<T>())(both, products.data(), n);
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_TRUE(same(products[i], std::ldexp(x[i], static_cast<int>(shift)))) << x[i] << " 2^" << shift;
    }
  });
}

TEST(maps, where_picks_by_the_condition_for_every_dtype) {
  for (const Dtype dtype : testing::all_dtypes())
    visit(dtype, []<class T>(T) {
      const std::vector<Stored<T>> a = testing::stored(testing::random_values<T>(1000, 1)),
                                   b = testing::stored(testing::random_values<T>(1000, 2));
      const auto condition = testing::stored(testing::random_values<bool>(1000, 3));
      std::vector<Stored<T>> out(1000);
      const void* in[] = {condition.data(), a.data(), b.data()};
      ASSERT_NE(map<"where">.of(dtype_of<T>()), nullptr);
      map<"where">.of(dtype_of<T>())(in, out.data(), 1000);
      for (std::size_t i = 0; i < out.size(); ++i)
        ASSERT_EQ(out[i], condition[i] ? a[i] : b[i]) << name(dtype_of<T>());
    });
}

TEST(maps, clip_keeps_to_the_bounds_and_propagates_nan) {
  const auto check = []<class T>(T) {
    std::vector<Stored<T>> x, low, high;
    for (const T value : edges<T>()) x.push_back(value), low.push_back(T(1)), high.push_back(T(3));
    std::vector<Stored<T>> out(x.size());
    const void* in[] = {x.data(), low.data(), high.data()};
    map<"clip">.of(dtype_of<T>())(in, out.data(), static_cast<std::int64_t>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const T expected = x[i] != x[i] ? x[i] : std::min(std::max(T(x[i]), T(1)), T(3));
      ASSERT_TRUE(same<T>(out[i], expected)) << name(dtype_of<T>()) << " " << i;
    }
  };
  for_integers(check);
  for_floats(check);
}

// Every op of every dtype, at sizes around the vector lengths: in place and out of place give the same, and
// nothing is written past the end.
TEST(maps, in_place_and_any_size_give_the_same) {
  for (const Map* each : all_maps())
    for (const Dtype dtype : testing::all_dtypes()) {
      const MapFn fn = each->of(dtype);
      if (fn == nullptr) continue;
      const std::string op = each->name();
      const std::size_t item = itemsize(dtype), out_item = itemsize(each->result(dtype));
      visit(dtype, [&]<class T>(T) {
        std::vector<Stored<T>> a = testing::stored(testing::random_values<T>(1100, 5)),
                               b = testing::stored(testing::random_values<T>(1100, 6));
        const auto condition = testing::stored(testing::random_values<bool>(1100, 7));
        std::vector<std::byte> whole(1100 * 16);
        const bool where = op == "where";
        const void* in[] = {where ? static_cast<const void*>(condition.data()) : a.data(), b.data(),
                            a.data()};
        fn(in, whole.data(), 1100);
        for (const std::int64_t n : testing::odd_sizes) {
          const std::size_t bytes = static_cast<std::size_t>(n) * out_item;
          std::vector<std::byte> part(bytes + 64, std::byte{0x5A});
          fn(in, part.data(), n);
          ASSERT_TRUE(
              std::equal(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(bytes), whole.begin()))
              << op << " " << name(dtype) << " n=" << n;
          for (std::size_t i = bytes; i < part.size(); ++i)
            ASSERT_EQ(part[i], std::byte{0x5A}) << op << " " << name(dtype) << " wrote past n=" << n;
          if (item != out_item) continue;
          auto b_copy = b;
          const void* aliased[] = {in[0], b_copy.data(), in[2]};
          fn(aliased, b_copy.data(),
             n);  // for one operand, out is another array; for two and three, out is the second operand
          ASSERT_EQ(memcmp(b_copy.data(), whole.data(), bytes), 0)
              << op << " " << name(dtype) << " in place, n=" << n;
          if (where) continue;
          auto a_copy = a;
          const void* first[] = {a_copy.data(), b.data(), a.data()};
          fn(first, a_copy.data(), n);
          ASSERT_EQ(memcmp(a_copy.data(), whole.data(), bytes), 0)
              << op << " " << name(dtype) << " in place of the first, n=" << n;
        }
      });
    }
}

TEST(maps, unknown_ops_and_dtypes_have_no_function) {
  EXPECT_EQ(map<"no such op">.of(float32), nullptr);
  EXPECT_EQ(map<"no such op">.arity(), 0);
  EXPECT_EQ(map<"exp">.of(int32), nullptr);
  EXPECT_EQ(map<"bitwise_and">.of(float32), nullptr);
  EXPECT_NE(map<"less">.of(complex64), nullptr);
  EXPECT_EQ(map<"exp">.arity(), 1);
  EXPECT_EQ(map<"where">.arity(), 3);
  EXPECT_EQ(map<"complex">.result(float32), complex64);
  EXPECT_EQ(map<"abs">.result(complex128), float64);
}

}  // namespace
}  // namespace tessera::kernels
