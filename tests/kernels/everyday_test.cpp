// Kernels with a fast path for long or simple operands: it gives the plain definition's results at every
// size.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "kernels/dense/convolve.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/fused.hpp"
#include "kernels/factor/lapack.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/move/positions.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/sort/count_places.hpp"
#include "kernels/sort/order_key.hpp"
#include "kernels/sort/sort.hpp"
#include "kernels/values.hpp"
#include "kernels/visit.hpp"

namespace tessera::kernels {
namespace {

const std::vector<std::int64_t> sizes = {0, 1, 2, 31, 32, 63, 64, 65, 100, 1023, 1024, 1025, 5000, 70001};
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

template <class F> void for_integers(F&& f) {
  for (int code = int8.code; code <= uint64.code; ++code)
    visit(Dtype{static_cast<std::uint8_t>(code)}, [&](auto zero) {
      if constexpr (std::is_integral_v<decltype(zero)> && !std::is_same_v<decltype(zero), bool>) f(zero);
    });
}

TEST(divide_by_one_number, is_division_of_each) {
  for_integers([](auto zero) {
    using T = decltype(zero);
    using Limits = std::numeric_limits<T>;
    std::mt19937_64 bits(3);
    std::vector<T> divisors = {T(1),
                               T(2),
                               T(7),
                               T(-7),
                               T(-1),
                               T(0),
                               T(100),
                               Limits::max(),
                               Limits::min(),
                               T(Limits::max() / 2),
                               T(3),
                               T(-3),
                               T(64),
                               T(-64),
                               T(Limits::min() + 1),
                               T(Limits::max() / 2 + 2)};
    for (int byte = 0; sizeof(T) == 1 && byte < 256; ++byte) divisors.push_back(T(byte));
    for (const std::int64_t n : {1, 32, 63, 300, 1000})
      for (const T divisor : divisors) {
        std::vector<T> a(n), b(n, divisor), quotient(n), rest(n);
        for (std::int64_t i = 0; i < n; ++i)  // 300: every byte
          a[i] = n == 63 ? T(std::int64_t(bits() % 200) - 100) : n == 300 ? T(i) : T(bits());
        a[0] = Limits::min(), a[n - 1] = Limits::max();
        using U = std::make_unsigned_t<T>;  // wraps around
        if (n > 31 && n != 300)
          a[1] = T(0), a[2] = divisor, a[3] = T(U(divisor) - U(1)), a[4] = T(U(0) - U(divisor)),
          a[5] = T(Limits::min() + 1);
        const void* in[] = {a.data(), b.data()};
        map<"floor_divide">.of(dtype_of<T>())(in, quotient.data(), n);
        map<"remainder">.of(dtype_of<T>())(in, rest.data(), n);
        for (std::int64_t i = 0; i < n; ++i) {
          const bool is_simple = divisor != 0 && !(std::is_signed_v<T> && divisor == T(-1));
          const T q = is_simple ? T(a[i] / divisor) : T(0), r = is_simple ? T(a[i] % divisor) : T(0);
          const bool down = r != 0 && (r < 0) != (divisor < 0);
          if (is_simple) {
            ASSERT_EQ(quotient[i], T(q - down)) << +a[i] << " / " << +divisor;
          }
          ASSERT_EQ(rest[i], down ? T(r + divisor) : r) << +a[i] << " % " << +divisor;
        }
      }
  });
}

TEST(count_nonzero, of_long_rows_of_bytes) {
  for (const std::int64_t n : sizes) {
    std::vector<std::uint8_t> x(n, 1);
    for (std::int64_t i = 0; i < n; i += 3) x[i] = i % 2 == 0 ? 0 : 255;
    std::int32_t count = -1;
    reduce(ReduceKind::count_nonzero, uint8, x.data(), Shape{n}, {0}, &count);
    EXPECT_EQ(count, std::count_if(x.begin(), x.end(), [](auto b) { return b != 0; })) << n;
    std::fill(x.begin(), x.end(), 200);
    reduce(ReduceKind::count_nonzero, uint8, x.data(), Shape{n}, {0}, &count);
    EXPECT_EQ(count, n);
  }
}

TEST(any_and_all, of_everything_see_the_one_that_decides_wherever_it_is) {
  for (const std::int64_t n : {1, 4096, 4097, 300000})
    for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
      std::vector<float> x(n, 0), y(n, 1);
      bool any = true, all = false;
      reduce(ReduceKind::any, float32, x.data(), Shape{n}, {0}, &any);
      reduce(ReduceKind::all, float32, y.data(), Shape{n}, {0}, &all);
      EXPECT_FALSE(any);
      EXPECT_TRUE(all);
      x[at] = std::nanf(""), y[at] = -0.f;
      reduce(ReduceKind::any, float32, x.data(), Shape{n}, {0}, &any);
      reduce(ReduceKind::all, float32, y.data(), Shape{n}, {0}, &all);
      EXPECT_TRUE(any);
      EXPECT_FALSE(all);
    }
}

TEST(arg_reduce, of_long_rows_is_the_first_place_of_the_extreme) {
  for (const std::int64_t n : sizes) {
    if (n == 0) continue;
    for (const std::int64_t at : {std::int64_t{0}, n / 3, n / 2, n - 1})
      for (const double value : {9.0, nan}) {
        std::vector<double> x(2 * n, -0.0);
        x[n + at] = value;
        if (at + 1500 < n) x[n + at + 1500] = value;
        std::int64_t largest[2], smallest[2];
        double extremes[2];
        arg_reduce(true, float64, x.data(), Shape{2, n}, 1, 0, extremes, largest);
        EXPECT_EQ(largest[0], 0);
        EXPECT_EQ(largest[1], at) << n;
        arg_reduce(false, float64, x.data(), Shape{2, n}, 1, 0, extremes, smallest);
        EXPECT_EQ(smallest[1], std::isnan(value) ? at : n == 1 || at > 0 ? 0 : 1) << n;
      }
  }
}

template <class T> void expect_places() {
  for (const std::int64_t n : sizes) {
    if (n == 0) continue;
    for (const bool max : {true, false})
      for (const std::int64_t start : {0, 1, 3})  // views begin anywhere
        for (const std::int64_t at : {std::int64_t{0}, n / 3, n / 2, n - 1}) {
          std::vector<T> x(start + n, T(5));
          std::int64_t place = -1;
          const auto find = [&] {
            arg_reduce(max, dtype_of<T>(), x.data() + start, Shape{n}, 0, 0, nullptr, &place);
          };
          find();
          EXPECT_EQ(place, 0) << n;
          x[start + at] = max ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
          if (at + 700 < n) x[start + at + 700] = x[start + at];
          find();
          EXPECT_EQ(place, at) << n;
          if constexpr (std::is_floating_point_v<T>) {
            for (const T special :
                 {T(nan), std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity()}) {
              x[start + n - 1 - at / 2] = special;
              const bool is_found = std::isnan(special) || (special > 0) == max;
              std::int64_t wanted = n - 1 - at / 2;
              if (!is_found)
                for (wanted = 0; wanted < n && std::abs(x[start + wanted]) != std::numeric_limits<T>::max();)
                  ++wanted;
              find();
              EXPECT_TRUE(wanted == n || place == wanted) << n << " " << special << " " << place;
            }
            std::fill(x.begin(), x.end(), T(-0.));
            x[start + at] = T(0);  // equal to the others
            find();
            EXPECT_EQ(place, 0) << n;
          }
        }
  }
}
TEST(arg_reduce, of_rows_of_any_length_and_start) {
  expect_places<float>();
  expect_places<double>();
  expect_places<std::int32_t>();
  expect_places<std::int64_t>();
  expect_places<std::int8_t>();
  expect_places<std::int16_t>();
  expect_places<std::uint8_t>();
  expect_places<std::uint16_t>();
  expect_places<std::uint32_t>();
}
// Nothing surpasses true, nor does false of the smallest: the first one is found, wherever others are.
TEST(arg_reduce, of_bools_is_the_first_place) {
  for (const std::int64_t n : sizes)
    for (const bool max : {true, false})
      for (std::int64_t at = 0; at < n; at += std::max<std::int64_t>(n / 5, 1)) {
        std::vector<std::uint8_t> x(static_cast<std::size_t>(n), max ? 0 : 1);
        for (std::int64_t i = at; i < n; i += 700) x[static_cast<std::size_t>(i)] = max ? 1 : 0;
        std::int64_t place = -1;
        arg_reduce(max, bool_, x.data(), Shape{n}, 0, 0, nullptr, &place);
        EXPECT_EQ(place, at) << n;
      }
}

TEST(run_fused_reduce, squares_are_summed_as_if_they_were_written) {
  const auto check = [](auto zero) {
    using T = decltype(zero);
    for (const std::int64_t n : {1, 63, 64, 129, 5000, 70'001, 200'003})
      for (const T special : {T(1), T(nan), std::numeric_limits<T>::infinity()}) {
        std::mt19937 bits(4);
        std::vector<T> x(n + 1), squares(n);
        for (auto& value : x) value = T(bits() % 2000) / 7 - 100;
        x[1 + n / 2] = special;
        const void* in[] = {x.data() + 1};
        map<"square">.of(dtype_of<T>())(in, squares.data(), n);
        const FusedProgram program{
            {{dtype_of<T>()}}, {{map<"square">.of(dtype_of<T>()), dtype_of<T>(), {0}, 1}}, {1}};
        const FusedProgram copies{
            {{dtype_of<T>()}}, {{map<"copy">.of(dtype_of<T>()), dtype_of<T>(), {0}, 1}}, {1}};
        T sum{}, wanted{};
        const auto run = [&](const FusedProgram& p, const T* from, T& to) {
          const FusedOperand operand{reinterpret_cast<const std::byte*>(from)};
          run_fused_reduce(p, Shape{n}, std::span(&operand, 1), ReduceKind::sum, {0},
                           reinterpret_cast<std::byte*>(&to));
        };
        run(program, x.data() + 1, sum);
        run(copies, squares.data(), wanted);
        EXPECT_TRUE(sum == wanted || (std::isnan(sum) && std::isnan(wanted)))
            << n << " " << sum << " " << wanted;
      }
  };
  check(float{});
  check(double{});
}

TEST(find_positions, counts_from_the_end_clamps_and_leaves_out) {
  for_integers([](auto zero) {
    using T = decltype(zero);
    for (const bool clamps : {false, true})
      for (const std::int64_t n : {1, 7, 64, 200}) {
        std::vector<T> indices(n);
        std::iota(indices.begin(), indices.end(), std::is_signed_v<T> ? T(-n / 2) : T(0));
        std::vector<std::int64_t> places(n);
        find_positions(dtype_of<T>(), indices.data(), n, {50, clamps, 10, 40}, places.data());
        for (std::int64_t i = 0; i < n; ++i) {
          auto at = static_cast<std::int64_t>(indices[i]);
          if (at < 0) at += 50;
          if (clamps) at = std::clamp<std::int64_t>(at, 0, 49);
          ASSERT_EQ(places[i], at >= 10 && at < 40 ? at - 10 : -1) << +indices[i];
        }
      }
  });
}

template <class T> void expect_chosen(std::int64_t n, unsigned part) {
  std::mt19937 bits(static_cast<unsigned>(n));
  std::vector<T> items(n), wanted;
  std::vector<std::uint8_t> mask(n);
  for (std::int64_t i = 0; i < n; ++i) {
    items[i] = static_cast<T>(bits());
    mask[i] = bits() % 4 < part;
    if (mask[i] != 0) wanted.push_back(items[i]);
  }
  std::vector<T> out(wanted.size() + 1, T(77));
  const auto read = choose_items(sizeof(T), items.data(), mask.data(), n,
                                 static_cast<std::int64_t>(wanted.size()), out.data());
  EXPECT_EQ(out.back(), T(77)) << "nothing is written past the end";
  out.pop_back();
  EXPECT_EQ(out, wanted) << n;
  const auto last = std::find_if(mask.rbegin(), mask.rend(), [](std::uint8_t m) { return m != 0; });
  EXPECT_EQ(read, mask.rend() - last) << "what it read ends with the last item that it chose";
  const auto half = static_cast<std::int64_t>(wanted.size() / 2);
  std::fill(out.begin(), out.end(), T(77));
  const auto first = choose_items(sizeof(T), items.data(), mask.data(), n, half, out.data());
  const auto rest = choose_items(sizeof(T), items.data() + first, mask.data() + first, n - first,
                                 static_cast<std::int64_t>(wanted.size()) - half, out.data() + half);
  EXPECT_EQ(out, wanted) << n << " in two calls";
  EXPECT_EQ(first + rest, read);
}
TEST(choose_items, of_every_size_in_order) {
  for (const std::int64_t n : sizes)
    for (const unsigned part : {0u, 1u, 3u, 4u}) {
      expect_chosen<std::uint8_t>(n, part), expect_chosen<std::uint16_t>(n, part);
      expect_chosen<std::uint32_t>(n, part), expect_chosen<std::uint64_t>(n, part);
    }
}

TEST(pack_bits, of_any_number_of_bytes_in_both_orders) {
  for (const std::int64_t bytes : {0, 1, 2, 7, 8, 9, 17, 100})
    for (const bool lowest_first : {false, true}) {
      std::mt19937 bits(static_cast<unsigned>(bytes));
      std::vector<std::uint8_t> mask(8 * bytes), wanted(bytes), out(bytes + 1, 0x5A);
      for (std::int64_t i = 0; i < 8 * bytes; ++i) {
        mask[i] = bits() % 2;
        wanted[i / 8] |= static_cast<std::uint8_t>(mask[i] << (lowest_first ? i % 8 : 7 - i % 8));
      }
      wanted.push_back(0x5A);  // nothing is written past the end
      pack_bits(mask.data(), bytes, lowest_first, out.data());
      EXPECT_EQ(out, wanted) << bytes;
    }
}

TEST(repeat, every_item_so_often) {
  for (const std::int64_t n : {1, 2, 3, 17}) {
    std::vector<double> x(101), out(101 * n);
    std::iota(x.begin(), x.end(), 1);
    repeat(out.data(), x.data(), 101, n, sizeof(double));
    for (std::int64_t i = 0; i < 101 * n; ++i) ASSERT_EQ(out[i], x[i / n]);
  }
}

template <class T> void expect_found(std::int64_t n) {
  std::mt19937 bits(5);
  std::vector<T> table(n), values(1501);
  for (auto* x : {&table, &values})
    for (T& v : *x) v = static_cast<T>(std::int64_t(bits() % 100) - 50);
  if constexpr (std::is_floating_point_v<T>) {
    values[3] = static_cast<T>(nan), values[4] = -T(0), values[5] = std::numeric_limits<T>::infinity();
    if (n > 2) table[1] = static_cast<T>(nan);
  }
  const auto before = [](T a, T b) { return order_key(a) < order_key(b); };
  std::sort(table.begin(), table.end(), before);
  std::vector<std::int64_t> left(values.size()), right(values.size());
  const auto count = static_cast<std::int64_t>(values.size());
  searchsorted(dtype_of<T>(), table.data(), n, values.data(), count, false, left.data());
  searchsorted(dtype_of<T>(), table.data(), n, values.data(), count, true, right.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(left[i], std::lower_bound(table.begin(), table.end(), values[i], before) - table.begin());
    ASSERT_EQ(right[i], std::upper_bound(table.begin(), table.end(), values[i], before) - table.begin());
  }
}
TEST(searchsorted, many_values_at_once_find_what_each_finds) {
  for (const std::int64_t n : {0, 1, 2, 3, 50, 64, 65, 1000}) {
    expect_found<std::int8_t>(n), expect_found<std::uint32_t>(n), expect_found<std::int64_t>(n);
    expect_found<float>(n), expect_found<double>(n), expect_found<std::uint64_t>(n);
  }
}

TEST(count_places, are_those_of_each_number_and_nothing_outside) {
  for_integers([](auto zero) {
    using T = decltype(zero);
    for (const std::int64_t length : {0, 1, 50, 5000}) {
      std::vector<T> x(1003);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(static_cast<int>(i) - 20);
      std::vector<std::int32_t> counts(length, -1), wanted(length, 0);
      for (const T v : x)
        if (v >= 0 && static_cast<std::uint64_t>(v) < static_cast<std::uint64_t>(length)) ++wanted[v];
      count_places(dtype_of<T>(), x.data(), 1003, length, counts.data());
      EXPECT_EQ(counts, wanted);
    }
  });
}

template <class R> void expect_magnitudes() {
  using Limits = std::numeric_limits<R>;
  const std::vector<R> parts = {0,
                                -0.0,
                                1,
                                R(-3),
                                R(4),
                                Limits::min(),
                                Limits::denorm_min(),
                                Limits::max(),
                                Limits::infinity(),
                                Limits::quiet_NaN(),
                                R(1e-30),
                                R(1e30)};
  std::vector<std::complex<R>> z;
  for (const R x : parts)
    for (const R y : parts) z.emplace_back(x, y);
  std::vector<R> sizes(z.size());
  const void* in[] = {z.data()};
  const auto size_of = map<"abs">.of(dtype_of<std::complex<R>>());
  size_of(in, sizes.data(), static_cast<std::int64_t>(z.size()));
  for (std::size_t i = 0; i < z.size(); ++i) {
    const R wanted = std::hypot(z[i].real(), z[i].imag());
    if (std::isnan(wanted))
      EXPECT_TRUE(std::isnan(sizes[i]));
    else if (std::isinf(wanted) || wanted < Limits::min())
      EXPECT_EQ(sizes[i], wanted) << z[i];
    else
      EXPECT_NEAR(sizes[i] / wanted, 1, 2 * Limits::epsilon()) << z[i];
    R alone = 0;
    const void* one[] = {&z[i]};
    size_of(one, &alone, 1);
    EXPECT_EQ(std::memcmp(&alone, &sizes[i], sizeof alone), 0)
        << z[i] << ": the same bits among others and alone";
  }
}
TEST(complex_maps, magnitudes_from_the_smallest_to_the_largest) {
  expect_magnitudes<float>();
  expect_magnitudes<double>();
}

template <class R> void expect_products() {
  using C = std::complex<R>;
  for (const std::int64_t n : sizes) {
    const auto a = testing::random_values<C>(n), b = testing::random_values<C>(n + 1);
    std::vector<C> product(n), conjugate(n);
    const void *in[] = {a.data(), b.data() + 1}, *one[] = {a.data()};
    map<"multiply">.of(dtype_of<C>())(in, product.data(), n);
    map<"conj">.of(dtype_of<C>())(one, conjugate.data(), n);
    for (std::int64_t i = 0; i < n; ++i) {
      const C x = a[i], y = b[i + 1];
      const volatile R rr = x.real() * y.real(), ii = x.imag() * y.imag(), ri = x.real() * y.imag(),
                       ir = x.imag() * y.real();  // volatile: each product is rounded
      ASSERT_EQ(product[i], C(rr - ii, ri + ir)) << i << " of " << n;
      ASSERT_EQ(conjugate[i], std::conj(x));
    }
  }
}
TEST(complex_maps, products_have_the_same_bits_at_every_place) {
  expect_products<float>();
  expect_products<double>();
}

TEST(convolve, lines_whose_ends_are_most_of_them) {
  for (const std::int64_t in : {1, 70, 300})
    for (const std::int64_t taps : {17, 100, 301})
      for (const std::int64_t step : {1, 3}) {
        const std::int64_t pad = (taps - 1) * step, out = in + pad;
        const ConvolveShape shape{float64, 1, 1, 1, 1, {{in, out, taps, 1, step, -pad}}};
        std::vector<double> x(in), w(taps), y(out), wanted(out, 0.0);
        for (std::int64_t i = 0; i < in; ++i) x[i] = static_cast<double>(i % 7) - 3;
        for (std::int64_t t = 0; t < taps; ++t) w[t] = static_cast<double>(t % 5) - 2;
        w[0] = std::numeric_limits<double>::infinity();  // read by one position, which has x there
        for (std::int64_t p = 0; p < out; ++p)
          for (std::int64_t t = 0; t < taps; ++t)
            if (const auto at = p + t * step - pad; at >= 0 && at < in) wanted[p] += w[t] * x[at];
        convolve(shape, reinterpret_cast<const std::byte*>(x.data()),
                 reinterpret_cast<const std::byte*>(w.data()), reinterpret_cast<std::byte*>(y.data()));
        for (std::int64_t p = 0; p < out; ++p)
          if (std::isnan(wanted[p]))
            ASSERT_TRUE(std::isnan(y[p]));
          else
            ASSERT_EQ(y[p], wanted[p]) << in << " " << taps << " " << step << " at " << p;
      }
}

TEST(svd, of_a_tall_matrix_multiplies_back) {
  constexpr std::int64_t m = 700, n = 5;
  std::vector<double> a(2 * m * n), u(a.size()), s(2 * n), vh(2 * n * n);
  std::mt19937 bits(9);
  for (double& value : a) value = static_cast<double>(bits() % 1000) / 500 - 1;
  for (std::int64_t i = 0; i < m; ++i) a[i * n + 4] = a[i * n];  // makes the matrix have rank 4
  ASSERT_FALSE(svd(float64, 2, m, n, false, a.data(), u.data(), s.data(), vh.data()).happened());
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < n; ++k)
          sum += u[(b * m + i) * n + k] * s[b * n + k] * vh[(b * n + k) * n + j];
        ASSERT_NEAR(sum, a[(b * m + i) * n + j], 1e-12);
      }
  EXPECT_LT(s[4], 1e-12);
  std::vector<double> only(2 * n);
  ASSERT_FALSE(svd(float64, 2, m, n, false, a.data(), nullptr, only.data(), nullptr).happened());
  for (std::int64_t k = 0; k < 2 * n; ++k) EXPECT_NEAR(only[k], s[k], 1e-12);
}

}  // namespace
}  // namespace tessera::kernels
