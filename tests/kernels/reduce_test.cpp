#include "kernels/reduce/reduce.hpp"
#include "base/thresholds.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/move/copy.hpp"
#include "kernels/values.hpp"

namespace tessera::kernels {
namespace {

using testing::Stored;

const std::vector<Shape> shapes = {Shape{},        Shape{1},        Shape{7},          Shape{1000},
                                   Shape{5000},    Shape{3, 5},     Shape{600, 3},     Shape{3, 600},
                                   Shape{1, 9, 1}, Shape{7, 33, 5}, Shape{2, 3, 4, 5}, Shape{40, 2, 300},
                                   Shape{9000, 2}};

std::vector<std::vector<int>> subsets_of_axes(int ndim) {
  std::vector<std::vector<int>> all;
  for (int mask = 0; mask < (1 << ndim); ++mask) {
    std::vector<int> axes;
    for (int d = 0; d < ndim; ++d)
      if ((mask >> d) & 1) axes.push_back(d);
    all.push_back(axes);
  }
  return all;
}

// A reference fold: for each output element, its operands in row-major order.
template <class T, class R, class F> std::vector<R> folded(const std::vector<T>& x, const Shape& shape,
                                                           const std::vector<int>& axes, R start, F fold) {
  std::vector<bool> reduced(shape.size(), false);
  for (const int axis : axes) reduced[axis] = true;
  std::int64_t places = 1;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (!reduced[d]) places *= shape[d];
  std::vector<R> out(places, start);
  std::vector<std::int64_t> index(shape.size(), 0);
  for (const T& value : x) {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < shape.size(); ++d)
      if (!reduced[d]) place = place * shape[d] + index[d];
    out[place] = fold(out[place], value);
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

using testing::before;
using testing::nan;

TEST(reduce, max_and_min_over_any_axes_of_every_dtype) {
  for (const Dtype dtype : testing::all_dtypes())
    visit(dtype, [&]<class T>(T) {
      for (const Shape& shape : shapes) {
        auto x = testing::stored(testing::random_values<T>(shape.elements()));
        if constexpr (is_inexact(dtype_of<T>()))
          if (x.size() > 100) x[77] = std::numeric_limits<T>::quiet_NaN();
        for (const auto& axes : subsets_of_axes(shape.ndim())) {
          const auto largest =
              folded(x, shape, axes, static_cast<Stored<T>>(lowest<T>()),
                     [](Stored<T> a, Stored<T> b) { return nan(a) || (!nan(b) && before(b, a)) ? a : b; });
          const auto smallest =
              folded(x, shape, axes, static_cast<Stored<T>>(highest<T>()),
                     [](Stored<T> a, Stored<T> b) { return nan(a) || (!nan(b) && before(a, b)) ? a : b; });
          std::vector<Stored<T>> out(largest.size());
          reduce(ReduceKind::max, dtype, x.data(), shape, axes, out.data());
          for (std::size_t i = 0; i < out.size(); ++i)
            ASSERT_TRUE(testing::same<T>(out[i], largest[i]) || (nan(out[i]) && nan(largest[i])))
                << name(dtype) << to_string(shape) << i;
          reduce(ReduceKind::min, dtype, x.data(), shape, axes, out.data());
          for (std::size_t i = 0; i < out.size(); ++i)
            ASSERT_TRUE(testing::same<T>(out[i], smallest[i]) || (nan(out[i]) && nan(smallest[i])))
                << name(dtype) << to_string(shape) << i;
        }
      }
    });
}

TEST(reduce, integer_sums_and_products_wrap) {
  for (const Dtype dtype : testing::all_dtypes()) {
    if (!is_integer(dtype)) continue;
    visit(dtype, [&]<class T>(T) {
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
        for (const Shape& shape : shapes) {
          const auto x = testing::random_values<T>(shape.elements());
          for (const auto& axes : subsets_of_axes(shape.ndim())) {
            const auto sums = folded(x, shape, axes, std::uint64_t{0},
                                     [](std::uint64_t a, T b) { return a + static_cast<std::uint64_t>(b); });
            const auto products = folded(x, shape, axes, std::uint64_t{1}, [](std::uint64_t a, T b) {
              return a * static_cast<std::uint64_t>(b);
            });
            std::vector<T> out(sums.size());
            reduce(ReduceKind::sum, dtype, x.data(), shape, axes, out.data());
            for (std::size_t i = 0; i < out.size(); ++i)
              ASSERT_EQ(out[i], static_cast<T>(sums[i])) << name(dtype) << to_string(shape);
            reduce(ReduceKind::prod, dtype, x.data(), shape, axes, out.data());
            for (std::size_t i = 0; i < out.size(); ++i)
              ASSERT_EQ(out[i], static_cast<T>(products[i])) << name(dtype) << to_string(shape);
          }
        }
    });
  }
}

TEST(reduce, float_and_complex_sums_are_near_exact) {
  const auto check = []<class T>(T, double epsilon) {
    for (const Shape& shape : shapes) {
      const auto x = testing::random_values<T>(shape.elements());
      for (const auto& axes : subsets_of_axes(shape.ndim())) {
        using Z = std::complex<long double>;
        const auto exact = folded(x, shape, axes, Z(0), [](Z a, T b) { return a + Z(b); });
        const auto size = folded(x, shape, axes, 0.0L, [](long double a, T b) { return a + std::abs(b); });
        std::vector<T> out(exact.size());
        reduce(ReduceKind::sum, dtype_of<T>(), x.data(), shape, axes, out.data());
        for (std::size_t i = 0; i < out.size(); ++i)
          ASSERT_LE(std::abs(Z(out[i]) - exact[i]), 8 * epsilon * size[i]) << to_string(shape);
      }
    }
  };
  check(float{}, std::numeric_limits<float>::epsilon());
  check(double{}, std::numeric_limits<double>::epsilon());
  check(std::complex<float>{}, std::numeric_limits<float>::epsilon());
  check(std::complex<double>{}, std::numeric_limits<double>::epsilon());
}

// Added sequentially, 16 million terms of 0.1f give 1.4e6 instead of 1.68e6.
TEST(reduce, the_error_of_a_long_sum_grows_with_the_logarithm_only) {
  const std::int64_t n = 1 << 24;
  const std::vector<float> x(n, 0.1f);
  const double exact = static_cast<double>(n) * double{0.1f};
  float whole = 0, columns[3] = {};
  reduce(ReduceKind::sum, float32, x.data(), Shape{n}, {0}, &whole);
  EXPECT_NEAR(whole, exact, 8e-7 * exact);
  reduce(ReduceKind::sum, float32, x.data(), Shape{n / 3, 3}, {0}, columns);
  for (const float column : columns)
    EXPECT_NEAR(column, static_cast<double>(n / 3) * double{0.1f}, 8e-7 * exact / 3);
  std::vector<float> wide(1024);
  reduce(ReduceKind::sum, float32, x.data(), Shape{n / 1024, 1024}, {0}, wide.data());
  for (const float column : wide)
    ASSERT_NEAR(column, static_cast<double>(n / 1024) * double{0.1f}, 8e-7 * exact / 1024);
}

TEST(reduce, any_all_and_count_nonzero_of_every_dtype) {
  for (const Dtype dtype : testing::all_dtypes())
    visit(dtype, [&]<class T>(T) {
      for (const Shape& shape : shapes) {
        auto x = testing::stored(testing::random_values<T>(shape.elements()));
        for (std::size_t i = 0; i < x.size(); i += 3) x[i] = 0;
        for (const auto& axes : subsets_of_axes(shape.ndim())) {
          const auto counts =
              folded(x, shape, axes, 0, [](int a, Stored<T> b) { return a + (b != Stored<T>(0)); });
          const auto elements = folded(x, shape, axes, 0, [](int a, Stored<T>) { return a + 1; });
          std::vector<std::int32_t> count(counts.size());
          std::vector<std::uint8_t> any(counts.size()), all(counts.size());
          reduce(ReduceKind::count_nonzero, dtype, x.data(), shape, axes, count.data());
          reduce(ReduceKind::any, dtype, x.data(), shape, axes, any.data());
          reduce(ReduceKind::all, dtype, x.data(), shape, axes, all.data());
          for (std::size_t i = 0; i < counts.size(); ++i) {
            ASSERT_EQ(count[i], counts[i]) << name(dtype) << to_string(shape);
            ASSERT_EQ(any[i] != 0, counts[i] != 0);
            ASSERT_EQ(all[i] != 0, counts[i] == elements[i]);
          }
        }
      }
    });
}

TEST(reduce, counts_of_columns_exceed_what_a_byte_holds) {
  constexpr std::int64_t rows = 600, columns = 2049;
  const auto nonzero = [](std::int64_t r, std::int64_t c) { return c % 3 != 0 || r % 7 == 0; };
  for (const Dtype dtype : testing::all_dtypes())
    visit(dtype, [&]<class T>(T) {
      std::vector<Stored<T>> x(rows * columns);
      for (std::int64_t i = 0; i < rows * columns; ++i)
        x[i] = nonzero(i / columns, i % columns) ? Stored<T>(1) : Stored<T>(0);
      std::vector<std::int32_t> counts(columns);
      reduce(ReduceKind::count_nonzero, dtype, x.data(), {rows, columns}, {0}, counts.data());
      for (std::int64_t c = 0; c < columns; ++c)
        ASSERT_EQ(counts[c], c % 3 != 0 ? rows : 86) << name(dtype) << c;
    });
}

TEST(reduce, nothing_reduces_to_the_identity) {
  float out[3] = {9, 9, 9};
  reduce(ReduceKind::sum, float32, nullptr, Shape{3, 0}, {1}, out);
  EXPECT_EQ(out[2], 0);
  reduce(ReduceKind::max, float32, nullptr, Shape{3, 0}, {1}, out);
  EXPECT_EQ(out[1], -INFINITY);
  reduce(ReduceKind::prod, float32, nullptr, Shape{0, 3}, {0}, out);
  EXPECT_EQ(out[0], 1);
  std::int32_t least = 0;
  reduce(ReduceKind::max, int32, nullptr, Shape{0}, {0}, &least);
  EXPECT_EQ(least, std::numeric_limits<std::int32_t>::min());
  std::uint8_t all = 0;
  reduce(ReduceKind::all, float32, nullptr, Shape{0}, {0}, &all);
  EXPECT_EQ(all, 1);
  reduce(ReduceKind::sum, float32, nullptr, Shape{0, 5}, {1}, nullptr);  // no output either
}

TEST(reduce, partial_results_combine_to_the_whole) {
  const auto x = testing::random_values<std::int64_t>(2000);
  for (const auto kind : {ReduceKind::sum, ReduceKind::prod, ReduceKind::max, ReduceKind::min}) {
    std::int64_t whole = 0, left = 0, right = 0;
    reduce(kind, int64, x.data(), Shape{2000}, {0}, &whole);
    reduce(kind, int64, x.data(), Shape{700}, {0}, &left);
    reduce(kind, int64, x.data() + 700, Shape{1300}, {0}, &right);
    combine(kind, int64, &right, &left, 1);
    EXPECT_EQ(left, whole) << name(kind);
    fill_identity(kind, int64, &left, 1);
    combine(kind, int64, &whole, &left, 1);
    EXPECT_EQ(left, whole) << name(kind) << ": the identity is neutral";
  }
}

TEST(arg_reduce, the_first_extreme_and_the_first_nan_of_every_dtype) {
  auto with_narrow = shapes;
  with_narrow.insert(with_narrow.end(), {Shape{5000, 2}, Shape{2, 1400, 3}, Shape{1024, 4}, Shape{63, 5},
                                         Shape{700, 7}, Shape{513, 8}, Shape{600, 9}});
  for (const Dtype dtype : testing::all_dtypes())
    visit(dtype, [&]<class T>(T) {
      for (const Shape& shape : with_narrow)
        for (int axis = 0; axis < shape.ndim(); ++axis)
          for (const bool with_nan : {false, true}) {
            auto x = testing::stored(testing::random_values<T>(shape.elements()));
            if constexpr (std::is_integral_v<T>)
              for (auto& value : x) value = static_cast<Stored<T>>(value % 4);  // many equals
            if constexpr (is_inexact(dtype_of<T>()))
              if (with_nan)
                for (std::size_t i = 5; i < x.size(); i += 11) x[i] = std::numeric_limits<T>::quiet_NaN();
            const AxisView view = axis_view(shape, axis);
            for (const bool max : {false, true}) {
              std::vector<std::int64_t> index(view.outer * view.inner);
              std::vector<Stored<T>> values(index.size());
              arg_reduce(max, dtype, x.data(), shape, axis, 1000, values.data(), index.data());
              for (std::int64_t o = 0; o < view.outer; ++o)
                for (std::int64_t j = 0; j < view.inner; ++j) {
                  const auto at = [&](std::int64_t i) -> T {
                    return x[(o * view.extent + i) * view.inner + j];
                  };
                  std::int64_t best = 0;
                  for (std::int64_t i = 1; i < view.extent; ++i)
                    if (!nan(at(best)) &&
                        (nan(at(i)) || (max ? before(at(best), at(i)) : before(at(i), at(best)))))
                      best = i;
                  const auto place = static_cast<std::size_t>(o * view.inner + j);
                  ASSERT_EQ(index[place], best + 1000) << name(dtype) << to_string(shape) << " axis " << axis;
                  ASSERT_TRUE(testing::same<T>(values[place], at(best)));
                }
            }
          }
    });
}

TEST(cumulative, is_the_reduction_of_every_prefix) {
  for (const Dtype dtype : testing::all_dtypes())
    visit(dtype, [&]<class T>(T) {
      for (const Shape& shape : shapes)
        for (int axis = 0; axis < shape.ndim(); ++axis)
          for (const auto kind : {ReduceKind::sum, ReduceKind::prod, ReduceKind::max, ReduceKind::min})
            for (const bool reverse : {false, true}) {
              const auto x = testing::stored(testing::random_values<T>(shape.elements()));
              std::vector<Stored<T>> out(x.size());
              cumulative(kind, reverse, dtype, x.data(), shape, axis, out.data());
              const AxisView view = axis_view(shape, axis);
              for (std::int64_t o = 0; o < view.outer; ++o)
                for (std::int64_t j = 0; j < view.inner; ++j) {
                  Stored<T> running{};
                  for (std::int64_t k = 0; k < view.extent; ++k) {
                    const std::int64_t i = reverse ? view.extent - 1 - k : k;
                    const auto at = static_cast<std::size_t>((o * view.extent + i) * view.inner + j);
                    if (k == 0)
                      running = x[at];
                    else
                      combine(kind, dtype, &x[at], &running, 1);
                    ASSERT_TRUE(testing::same<T>(out[at], running))
                        << name(kind) << name(dtype) << to_string(shape) << " axis " << axis;
                  }
                }
              auto in_place = x;
              cumulative(kind, reverse, dtype, in_place.data(), shape, axis, in_place.data());
              ASSERT_EQ(std::memcmp(in_place.data(), out.data(), out.size() * sizeof out[0]), 0);
            }
    });
}

// Vectors add in another order: integers keep their values, floats stay within the rounding of a loop.
template <class T> void expect_scan_by_vectors(ReduceKind kind, std::int64_t n, bool reverse, bool has_before,
                                               std::size_t offset) {
  const Dtype dtype = dtype_of<T>();
  auto x = testing::random_values<T>(n, 7);
  if constexpr (std::is_floating_point_v<T>)
    if (kind == ReduceKind::prod)
      for (auto& value : x) value = T(1) + value / T(64);  // no product overflows
  const T before = has_before ? x[0] : T(kind == ReduceKind::prod);
  std::vector<T> out(offset + static_cast<std::size_t>(n) + 1, T(77));
  cumulative(kind, reverse, dtype, x.data(), Shape{n}, 0, out.data() + offset, has_before ? &before : nullptr,
             ScanOrder::by_vectors);
  using Exact = std::conditional_t<std::is_floating_point_v<T>, long double, T>;
  using U = std::conditional_t<std::is_integral_v<T>, std::uint64_t, Exact>;
  auto exact = static_cast<U>(before), size = exact < U(0) ? U(0) - exact : exact;
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t i = reverse ? n - 1 - k : k;
    const auto value = static_cast<U>(x[static_cast<std::size_t>(i)]);
    exact = kind == ReduceKind::sum ? exact + value : exact * value;
    const T found = out[offset + static_cast<std::size_t>(i)];
    if constexpr (std::is_floating_point_v<T>) {
      size = kind == ReduceKind::sum ? size + std::abs(value) : std::abs(exact);
      ASSERT_LE(std::abs(found - exact),
                static_cast<long double>(k + 2) * std::numeric_limits<T>::epsilon() * std::max(size, U(0)))
          << name(kind) << name(dtype) << " " << n << " at " << i << (reverse ? " reverse" : "");
    } else {
      ASSERT_EQ(found, static_cast<T>(exact)) << name(kind) << name(dtype) << " " << n << " at " << i;
    }
  }
  ASSERT_EQ(out.back(), T(77)) << "behind the line";
  if (offset > 0) {
    ASSERT_EQ(out[offset - 1], T(77)) << "before the line";
  }
  cumulative(kind, reverse, dtype, x.data(), Shape{n}, 0, x.data(), has_before ? &before : nullptr,
             ScanOrder::by_vectors);
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(static_cast<double>(x[i]), static_cast<double>(out[offset + i]), 1e-3) << "in place";
}

TEST(cumulative, vectors_give_the_sums_and_products_of_a_loop) {
  for (const std::int64_t divisor : {std::int64_t{1}, std::int64_t{1} << 20}) {  // streamed stores too
    const LowThresholds low(divisor);
    for (const std::int64_t n : {1, 31, 32, 33, 47, 64, 100, 1001})
      for (const bool reverse : {false, true})
        for (const bool has_before : {false, true})
          for (const std::size_t offset : {0, 1, 5})
            for (const auto kind : {ReduceKind::sum, ReduceKind::prod}) {
              expect_scan_by_vectors<float>(kind, n, reverse, has_before, offset);
              expect_scan_by_vectors<double>(kind, n, reverse, has_before, offset);
              expect_scan_by_vectors<std::int32_t>(kind, n, reverse, has_before, offset);
              expect_scan_by_vectors<std::uint32_t>(kind, n, reverse, has_before, offset);
              expect_scan_by_vectors<std::int64_t>(kind, n, reverse, has_before, offset);
              expect_scan_by_vectors<std::uint64_t>(kind, n, reverse, has_before, offset);
              expect_scan_by_vectors<std::int16_t>(kind, n, reverse, has_before, offset);
            }
  }
}

TEST(cumulative, vectors_keep_signs_of_zero_and_propagate_what_is_not_finite) {
  for (const bool reverse : {false, true}) {
    std::vector<float> x(100, -0.0F), out(100);
    const auto scan = [&] {
      cumulative(ReduceKind::sum, reverse, float32, x.data(), Shape{100}, 0, out.data(), nullptr,
                 ScanOrder::by_vectors);
    };
    const auto at = [&](std::int64_t k) { return static_cast<std::size_t>(reverse ? 99 - k : k); };
    x[at(60)] = 0;
    scan();
    for (std::int64_t k = 0; k < 100; ++k) ASSERT_EQ(std::signbit(out[at(k)]), k < 60) << k;
    x[at(37)] = std::numeric_limits<float>::denorm_min();
    x[at(50)] = INFINITY;
    x[at(70)] = -INFINITY;
    scan();
    for (std::int64_t k = 0; k < 37; ++k) ASSERT_EQ(out[at(k)], 0);
    for (std::int64_t k = 37; k < 50; ++k)
      ASSERT_EQ(out[at(k)], std::numeric_limits<float>::denorm_min()) << k;
    for (std::int64_t k = 50; k < 70; ++k) ASSERT_EQ(out[at(k)], INFINITY) << k;
    for (std::int64_t k = 70; k < 100; ++k) ASSERT_TRUE(std::isnan(out[at(k)])) << k;
  }
}

TEST(cumulative, logsumexp_neither_overflows_nor_loses_infinities) {
  const double x[] = {-INFINITY, 1000, 1000, -1000, 1001, INFINITY, 3};
  double out[7];
  cumulative(ReduceKind::logsumexp, false, float64, x, Shape{7}, 0, out);
  EXPECT_EQ(out[0], -INFINITY);
  EXPECT_EQ(out[1], 1000);
  EXPECT_NEAR(out[2], 1000 + std::log(2.0), 1e-12);
  EXPECT_NEAR(out[3], out[2], 1e-12);
  EXPECT_NEAR(out[4], 1001 + std::log1p(2 * std::exp(-1.0)), 1e-12);
  EXPECT_EQ(out[5], INFINITY);
  EXPECT_EQ(out[6], INFINITY);
  const double columns[] = {-INFINITY, 1, 0, 2, 0, NAN};
  cumulative(ReduceKind::logsumexp, true, float64, columns, Shape{3, 2}, 0, out);
  EXPECT_NEAR(out[0], std::log(2.0), 1e-15);
  EXPECT_TRUE(std::isnan(out[1]));
}

}  // namespace
}  // namespace tessera::kernels
