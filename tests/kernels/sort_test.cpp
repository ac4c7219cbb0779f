#include "kernels/sort/sort.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

#include "base/thresholds.hpp"
#include "kernels/sort/count_digits.hpp"
#include "kernels/sort/order_key.hpp"
#include "kernels/sort/select.hpp"
#include "kernels/threads.hpp"
#include "kernels/values.hpp"

namespace tessera::kernels {
namespace {

using testing::before;
using testing::Stored;

template <class T> bool ordered(T a, T b, SortOrder order) {
  return order.descending ? before(b, a) : before(a, b);
}

// Edge values, NaNs, and many equals.
template <class T> std::vector<Stored<T>> awkward(std::int64_t n, std::uint32_t seed) {
  auto x = testing::stored(testing::random_values<T>(n, seed));
  const auto edges = testing::edges<T>();
  for (std::size_t i = 0; i < x.size(); i += 3) x[i] = edges[(i / 3 * 7) % edges.size()];
  return x;
}

template <class T>
std::vector<std::int64_t> stable_positions(const std::vector<Stored<T>>& x, SortOrder order) {
  std::vector<std::int64_t> at(x.size());
  std::iota(at.begin(), at.end(), 0);
  std::stable_sort(at.begin(), at.end(),
                   [&](std::int64_t a, std::int64_t b) { return ordered<T>(x[a], x[b], order); });
  return at;
}

template <class F> void for_each_case(F f) {
  for (const Dtype dtype : testing::all_dtypes())
    visit(dtype, [&]<class T>(T) {
      for (const std::int64_t n : {0, 1, 2, 50, 97, 191, 192, 193, 513, 3000, 70'001})
        for (const bool descending : {false, true}) f(T{}, n, SortOrder{descending});
    });
}

// Compares bits, so that a misplaced NaN or -0 is found.
template <class T> bool same_bits(const T& a, const T& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

// Long rows, and many short ones, which may be sorted side by side.
TEST(sort, rows_of_every_dtype_are_stable_with_nan_last) {
  for_each_case([]<class T>(T, std::int64_t n, SortOrder order) {
    const std::int64_t rows = n < 600 ? 35 : 3;
    std::vector<Stored<T>> data, expected;
    std::vector<std::int64_t> expected_at;
    for (std::uint32_t row = 0; row < rows; ++row) {
      const auto x = row < 16 ? awkward<T>(n, row + 1) : testing::stored(testing::random_values<T>(n, row));
      for (const std::int64_t i : stable_positions<T>(x, order))
        expected.push_back(x[i]), expected_at.push_back(i);
      data.insert(data.end(), x.begin(), x.end());
    }
    std::vector<std::int64_t> at(expected.size());
    argsort_rows(dtype_of<T>(), data.data(), rows, n, order, at.data());
    ASSERT_EQ(at, expected_at) << name(dtype_of<T>()) << " n=" << n << " descending=" << order.descending;
    std::vector<std::int32_t> narrow(expected.size());
    argsort_rows(dtype_of<T>(), data.data(), rows, n, order, narrow.data());
    ASSERT_TRUE(std::equal(at.begin(), at.end(), narrow.begin())) << name(dtype_of<T>()) << " n=" << n;
    std::vector<Stored<T>> out(data.size());
    sort_rows(dtype_of<T>(), data.data(), rows, n, order, out.data());
    sort_rows(dtype_of<T>(), data.data(), rows, n, order, data.data());
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_TRUE(same_bits(out[i], expected[i])) << name(dtype_of<T>()) << " n=" << n << " at " << i;
      ASSERT_TRUE(same_bits(data[i], expected[i])) << "in place " << name(dtype_of<T>());
    }
  });
}

TEST(sort, keys_with_positions_are_ordered_as_the_elements) {
  for_each_case([]<class T>(T, std::int64_t n, SortOrder) {
    const Dtype dtype = dtype_of<T>();
    if (is_complex(dtype)) return;
    auto x = awkward<T>(n, 4);
    const auto second = awkward<T>(n, 5);
    const auto expected = stable_positions<T>(x, {}), of_second = stable_positions<T>(second, {});
    x.insert(x.end(), second.begin(), second.end());
    std::vector<std::int64_t> at(x.size());
    std::vector<std::byte> keys(x.size() * itemsize(dtype));
    argsort_keys(dtype, x.data(), 2, n, 1000, keys.data(), at.data());
    std::vector<std::int64_t> again(n);
    argsort_rows(dtype_of_keys(dtype), keys.data(), 1, n, {}, again.data());
    for (std::int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(at[i], expected[i] + 1000) << name(dtype) << " n=" << n;
      ASSERT_EQ(at[n + i], of_second[i] + 1000) << name(dtype) << " n=" << n;
      ASSERT_EQ(again[i], i) << "the keys of " << name(dtype) << " are in order";
    }
  });
}

TEST(sort, pairs_carry_their_payload) {
  for_each_case([]<class T>(T, std::int64_t n, SortOrder order) {
    const auto x = awkward<T>(n, 4);
    auto keys = x;
    std::vector<std::int64_t> payload(x.size());
    for (std::size_t i = 0; i < payload.size(); ++i)
      payload[i] = static_cast<std::int64_t>(i) * 1'000'000'007;
    sort_pairs(dtype_of<T>(), keys.data(), payload.data(), n, order);
    const auto at = stable_positions<T>(x, order);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      ASSERT_TRUE(same_bits(keys[i], x[at[i]]));
      ASSERT_EQ(payload[i], at[i] * 1'000'000'007);
    }
  });
}

template <class K, class P> void sort_long_pairs(K mask, std::int64_t equal) {
  constexpr std::int64_t n = 70'001;
  std::mt19937_64 bits(7);
  std::vector<K> keys(n);
  for (K& key : keys) key = static_cast<K>(bits()) & mask;
  std::fill_n(keys.begin() + 5, equal, keys[0]);
  std::vector<P> at(n);
  std::iota(at.begin(), at.end(), P(0));
  auto wanted = at;
  std::ranges::stable_sort(wanted, [&](auto a, auto b) { return keys[a] < keys[b]; });
  auto sorted = keys;
  sort_pairs(dtype_of<K>(), sorted.data(), at.data(), n, {});
  ASSERT_EQ(at, wanted) << name(dtype_of<K>()) << " mask " << mask << ", " << equal << " equal";
  EXPECT_TRUE(std::ranges::is_sorted(sorted));
}
template <class K> void sort_long_pairs_of() {
  const LowThresholds low(64);
  constexpr K top = K{1} << (8 * sizeof(K) - 1);
  for (const std::int64_t equal : {0, 100, 5000, 69'000})
    for (const K mask : {~K{0}, K{0x3ffff00}, K{0xff}, top | 1, K{0}}) {
      sort_long_pairs<K, std::uint32_t>(mask, equal);
      sort_long_pairs<K, std::int64_t>(mask, equal);
    }
}
TEST(sort, long_pairs_are_stable_however_their_keys_are_spread) {
  sort_long_pairs_of<std::uint32_t>();
  sort_long_pairs_of<std::uint64_t>();
}

TEST(sort, merged_runs_are_the_stable_sort_of_their_concatenation) {
  for_each_case([]<class T>(T, std::int64_t n, SortOrder order) {
    for (const int runs : {1, 2, 3, 7}) {
      std::vector<std::int64_t> offsets{0};
      for (int r = 1; r <= runs; ++r)
        offsets.push_back(r == runs ? n : r == 2 ? offsets.back() : n * r / runs);  // one run is empty
      auto keys = awkward<T>(n, 9);
      std::vector<std::int64_t> payload(keys.size());
      std::iota(payload.begin(), payload.end(), 0);
      for (std::size_t r = 0; r + 1 < offsets.size(); ++r)
        sort_pairs(dtype_of<T>(), keys.data() + offsets[r], payload.data() + offsets[r],
                   offsets[r + 1] - offsets[r], order);
      const auto at = stable_positions<T>(keys, order);
      std::vector<Stored<T>> out(keys.size()), out_keys_only(keys.size());
      std::vector<std::int64_t> out_payload(keys.size());
      merge_runs(dtype_of<T>(), keys.data(), payload.data(), offsets, order, out.data(), out_payload.data());
      merge_runs(dtype_of<T>(), keys.data(), nullptr, offsets, order, out_keys_only.data(), nullptr);
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_EQ(out_payload[i], payload[at[i]]);
        ASSERT_TRUE(same_bits(out[i], keys[at[i]]));
        ASSERT_TRUE(same_bits(out_keys_only[i], out[i]));
      }
    }
  });
}

// Numbers without NaN and -0 are merged by vectors, from runs that alternate, follow each other, or repeat.
template <class T> void expect_merged_numbers() {
  std::mt19937_64 bits(5);
  for (const std::int64_t n : {1, 15, 70, 1000, 4099, 70'001})
    for (const std::int64_t middle : {std::int64_t{0}, n / 3, n / 2, n - 1})
      for (const std::uint64_t span : {std::uint64_t{3}, std::uint64_t{1000}, ~std::uint64_t{0} >> 12})
        for (const bool is_apart : {false, true}) {
          std::vector<T> keys(static_cast<std::size_t>(n));
          for (auto& key : keys) key = static_cast<T>(bits() % span) - static_cast<T>(span / 2);
          if (is_apart) std::sort(keys.begin(), keys.end(), std::greater<>());
          std::sort(keys.begin(), keys.begin() + middle);
          std::sort(keys.begin() + middle, keys.end());
          auto expected = keys;
          std::sort(expected.begin(), expected.end());
          std::vector<T> out(keys.size() + 1, T(77));
          const std::int64_t offsets[] = {0, middle, n};
          merge_runs(dtype_of<T>(), keys.data(), nullptr, offsets, {}, out.data(), nullptr);
          EXPECT_EQ(out.back(), T(77)) << "nothing is written past the end";
          out.pop_back();
          ASSERT_EQ(out, expected) << n << " from " << middle << " span " << span << " apart " << is_apart;
        }
}
TEST(vectors, merge_runs_of_plain_numbers) {
  expect_merged_numbers<float>();
  expect_merged_numbers<double>();
  expect_merged_numbers<std::int32_t>();
  expect_merged_numbers<std::uint32_t>();
  expect_merged_numbers<std::int64_t>();
  expect_merged_numbers<std::uint64_t>();
}

// Rows that vectors sort, with the largest and smallest keys among them, and rows just too long for them.
template <class T> void expect_sorted_rows() {
  std::mt19937_64 bits(6);
  std::vector<std::int64_t> lengths{511, 512, 1000, 1023, 2047, 2048, 2049};
  for (std::int64_t n = 1; n <= 260; ++n) lengths.push_back(n);
  for (const std::int64_t n : lengths)
    for (const auto& [rows, descending] : {std::pair(3, false), {3, true}, {37, false}, {37, true}}) {
      std::vector<T> x(static_cast<std::size_t>(rows * n));
      for (auto& value : x)
        value = static_cast<T>(static_cast<double>(bits() % 2000) - (std::is_signed_v<T> ? 1000.0 : 0.0));
      x[x.size() / 2] = std::numeric_limits<T>::max(), x.back() = std::numeric_limits<T>::lowest();
      auto expected = x;
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto first = expected.begin() + r * n;
        descending ? std::sort(first, first + n, std::greater<>()) : std::sort(first, first + n);
      }
      std::vector<T> out(x.size() + 1, T(77));
      sort_rows(dtype_of<T>(), x.data(), rows, n, {descending}, out.data());
      EXPECT_EQ(out.back(), T(77)) << "nothing is written past the end";
      out.pop_back();
      ASSERT_EQ(out, expected) << rows << " of " << n << " descending " << descending;
    }
}
TEST(vectors, sort_short_rows) {
  expect_sorted_rows<float>();
  expect_sorted_rows<double>();
  expect_sorted_rows<std::int32_t>();
  expect_sorted_rows<std::uint32_t>();
  expect_sorted_rows<std::int64_t>();
  expect_sorted_rows<std::uint64_t>();
}

TEST(searchsorted, left_and_right_of_equals) {
  for_each_case([]<class T>(T, std::int64_t n, SortOrder order) {
    if (order.descending) return;
    auto sorted = awkward<T>(n, 11);
    sort_rows(dtype_of<T>(), sorted.data(), 1, n, {}, sorted.data());
    const auto values = awkward<T>(100, 12);
    std::vector<std::int64_t> left(100), right(100);
    searchsorted(dtype_of<T>(), sorted.data(), n, values.data(), 100, false, left.data());
    searchsorted(dtype_of<T>(), sorted.data(), n, values.data(), 100, true, right.data());
    for (std::size_t i = 0; i < 100; ++i) {
      const auto compare = [](Stored<T> a, Stored<T> b) { return before<T>(a, b); };
      ASSERT_EQ(left[i], std::lower_bound(sorted.begin(), sorted.end(), values[i], compare) - sorted.begin())
          << name(dtype_of<T>());
      ASSERT_EQ(right[i], std::upper_bound(sorted.begin(), sorted.end(), values[i], compare) - sorted.begin())
          << name(dtype_of<T>());
    }
  });
}

TEST(top_k, the_largest_in_order_with_the_first_of_equals_first) {
  for_each_case([]<class T>(T, std::int64_t n, SortOrder order) {
    if (order.descending) return;
    for (const std::int64_t k : {std::int64_t{0}, std::int64_t{1}, std::int64_t{10}, n / 3, n}) {
      if (k > n) continue;
      const auto x = awkward<T>(2 * n, 13);
      std::vector<Stored<T>> values(2 * k);
      std::vector<std::int64_t> index(values.size());
      top_k_rows(dtype_of<T>(), x.data(), 2, n, k, values.data(), index.data());
      for (std::int64_t row = 0; row < 2; ++row) {
        const std::vector<Stored<T>> one(x.begin() + row * n, x.begin() + (row + 1) * n);
        const auto at = stable_positions<T>(one, SortOrder{true});
        for (std::int64_t i = 0; i < k; ++i) {
          const auto place = static_cast<std::size_t>(row * k + i);
          ASSERT_EQ(index[place], at[i]) << name(dtype_of<T>()) << " n=" << n << " k=" << k;
          ASSERT_TRUE(same_bits(values[place], one[index[place]]));
        }
      }
    }
  });
}

// Equally wide bins use a fast path, others a search: both must count as a search for each value does, also
// next to the edges.
template <class T> void check_counts(const std::vector<T>& edges, std::vector<T> values) {
  for (const T edge : edges)
    for (const T direction : {std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity()})
      values.push_back(edge), values.push_back(std::nextafter(edge, direction));
  for (const T odd : testing::edges<T>()) values.push_back(odd);
  std::vector<std::int32_t> expected(edges.size()), got(edges.size(), -1);
  for (const T value : values)
    if (value >= edges.front() && value <= edges.back())
      ++expected[static_cast<std::size_t>(std::upper_bound(edges.begin(), edges.end(), value) -
                                          edges.begin() - 1)];
  for (const int team : {1, 3}) {
    set_threads(team);
    count_bins(dtype_of<T>(), edges.data(), static_cast<std::int64_t>(edges.size()), values.data(),
               static_cast<std::int64_t>(values.size()), got.data());
    EXPECT_EQ(got, expected) << name(dtype_of<T>()) << ", " << edges.size() << " edges";
  }
  set_threads(1);
}
template <class T> void check_counts_of() {
  auto values = testing::random_values<T>(200'003, 5);
  for (auto& value : values) value *= T(1.5);
  for (const int bins : {1, 2, 3, 10, 100, 1000}) {
    std::vector<T> equal, squares;
    for (int i = 0; i <= bins; ++i) {
      const T at = T(i) / T(bins);
      equal.push_back(T(-0.7) + at * T(1.9)), squares.push_back(at * at);
    }
    check_counts<T>(equal, values);
    check_counts<T>(squares, values);
  }
  check_counts<T>({T(0), T(0), T(0.5), T(0.5), T(1), T(1)}, values);
  check_counts<T>({T(0.25), T(0.25)}, values);
  check_counts<T>({T(-1e30), T(0), T(1e30)}, values);
}
TEST(count_bins, counts_as_a_search_of_each_value_does) {
  check_counts_of<float>();
  check_counts_of<double>();
}

template <class P> void expect_divided() {
  for (const int team : {1, 3})
    for (const std::int64_t n : {0, 1, 2, 15, 16, 17, 1000, 70'001, 200'003}) {
      set_threads(team);
      std::vector<std::uint8_t> sides(static_cast<std::size_t>(n));
      std::vector<P> payload(sides.size()), out(sides.size() + 1, P(77)), expected;
      std::mt19937 bits(8);
      for (std::size_t i = 0; i < sides.size(); ++i)
        sides[i] = static_cast<std::uint8_t>(bits() % 8 < 5 ? 0 : bits() % 3), payload[i] = bits();
      for (const int side : {0, 1, 2})
        for (std::size_t i = 0; i < sides.size(); ++i)
          if (sides[i] == side) expected.push_back(payload[i]);
      divide_by_sides(sides.data(), payload.data(), n, out.data());
      EXPECT_EQ(out.back(), P(77)) << "nothing is written past the end";
      out.pop_back();
      ASSERT_EQ(out, expected) << n << " elements, " << team << " threads";
    }
  set_threads(1);
}
TEST(divide_by_sides, keeps_the_order_of_each_side) {
  expect_divided<std::uint32_t>();
  expect_divided<std::uint64_t>();
}
TEST(sort, threads_share_the_positions_of_bytes) {
  const auto x = testing::random_values<std::int8_t>(200'003, 9);
  std::vector<std::int64_t> one(x.size()), three(x.size());
  argsort_rows(int8, x.data(), 1, std::ssize(x), {}, one.data());
  set_threads(3);
  argsort_rows(int8, x.data(), 1, std::ssize(x), {}, three.data());
  set_threads(1);
  EXPECT_EQ(one, three);
}

// Searches each part of the row in a thread of its own; add_up is a barrier of the threads.
template <class T> std::vector<T> selected_by_parts(const std::vector<T>& row,
                                                    std::span<const std::int64_t> positions, int parts) {
  std::vector<std::vector<T>> found(parts, std::vector<T>(positions.size()));
  std::barrier meet(parts);
  std::vector<std::int64_t> sums;
  std::mutex one;
  std::vector<std::jthread> threads;
  const auto n = std::ssize(row);
  for (int part = 0; part < parts; ++part)
    threads.emplace_back([&, part] {
      const auto add_up = [&](std::int64_t* numbers, std::int64_t count) {
        meet.arrive_and_wait();
        {
          const std::lock_guard lock(one);
          sums.resize(static_cast<std::size_t>(count));
          for (std::int64_t i = 0; i < count; ++i) sums[i] += numbers[i];
        }
        meet.arrive_and_wait();
        std::copy(sums.begin(), sums.end(), numbers);
        meet.arrive_and_wait();
        const std::lock_guard lock(one);
        sums.clear();
      };
      const std::int64_t first = n * part / parts, last = n * (part + 1) / parts;
      select_rows(dtype_of<T>(), row.data() + first, 1, last - first, positions,
                  {part, parts, first, n, add_up}, found[part].data());
    });
  threads.clear();
  for (const auto& other : found)
    EXPECT_EQ(std::memcmp(other.data(), found[0].data(), other.size() * sizeof(T)), 0);
  return found[0];
}
template <class T> void check_selected(std::vector<T> row) {
  for (T& x : row)
    if (x != x) x = std::numeric_limits<T>::quiet_NaN();
  auto sorted = row;
  const auto n = std::ssize(row);
  sort_rows(dtype_of<T>(), row.data(), 1, n, {}, sorted.data());
  const std::vector<std::int64_t> positions = {0, n / 4, (n - 1) / 2, n / 2, n - 1};
  std::vector<T> expected, found(2 * positions.size());
  for (const auto p : positions) expected.push_back(sorted[p]);
  expected.insert(expected.end(), expected.begin(), expected.end());
  row.insert(row.end(), row.begin(), row.end());
  select_rows(dtype_of<T>(), row.data(), 2, n, positions, {}, found.data());
  row.resize(n);
  const auto same = [&](const std::vector<T>& got) {
    return std::memcmp(got.data(), expected.data(), got.size() * sizeof(T)) == 0;
  };
  EXPECT_TRUE(same(found)) << n;
  for (const int parts : {2, 3}) EXPECT_TRUE(same(selected_by_parts(row, positions, parts))) << n;
}
template <class T> void check_select_of() {
  for (const std::int64_t n : {1, 2, 3, 24, 25, 50, 333, 4095, 4096, 70'001}) {
    check_selected(awkward<T>(n, 3));
    auto values = testing::random_values<T>(n, 7);
    check_selected<T>({values.begin(), values.end()});
    for (T& x : values) x = static_cast<T>(1 + std::abs(x) / 1e6);  // one digit for all
    check_selected<T>({values.begin(), values.end()});
    for (std::int64_t i = 0; i < n; ++i) values[i] = static_cast<T>(i % 256);  // no sample tells the row
    check_selected<T>({values.begin(), values.end()});
    for (std::int64_t i = 0; i < n; ++i) values[i] = i % 5 == 0 ? T(-0.0) : i % 2 == 0 ? T(0) : T(i % 3 - 1);
    check_selected<T>({values.begin(), values.end()});
  }
}
TEST(select_rows, finds_the_very_elements_that_sorting_gives) {
  check_select_of<float>();
  check_select_of<double>();
}

// Narrows the key of the element at a position, digit by digit, as a selection does.
template <class T> OrderKey<T> key_by_digits(const std::vector<T>& x, std::int64_t rank) {
  std::uint64_t prefix = 0;
  for (int shift = 8 * static_cast<int>(sizeof(T)) - digit_bits; shift >= 0; shift -= digit_bits) {
    const std::vector<std::uint64_t> prefixes = {prefix ^ 1, prefix, prefix};
    std::vector<std::int64_t> counts(3 * digit_count, -1);
    count_digits(dtype_of<T>(), x.data(), std::ssize(x), prefixes, shift, counts.data());
    const auto of = std::span(counts).subspan(digit_count, digit_count);
    EXPECT_TRUE(std::equal(of.begin(), of.end(), counts.begin() + 2 * digit_count));
    std::int64_t digit = 0;
    for (; digit + 1 < digit_count && rank >= of[digit]; ++digit) rank -= of[digit];
    prefix = prefix << digit_bits | static_cast<std::uint64_t>(digit);
  }
  return static_cast<OrderKey<T>>(prefix);
}
template <class T> void check_digits_of() {
  for (const int team : {1, 3})
    for (const std::int64_t n : {1, 2, 1023, 1025, 600'001}) {
      set_threads(team);
      auto x = testing::random_values<T>(n, 11);
      for (std::int64_t i = 0; i < n; i += 7) x[i] = std::numeric_limits<T>::quiet_NaN();
      for (std::int64_t i = 3; i < n; i += 7)
        x[i] = i % 2 == 0 ? T(-0.0) : -std::numeric_limits<T>::infinity();
      std::vector<OrderKey<T>> sorted;
      for (const T value : x) sorted.push_back(order_key(value));
      std::ranges::sort(sorted);
      for (const auto rank : {std::int64_t{0}, n / 3, n / 2, n - 1})
        EXPECT_EQ(key_by_digits(x, rank), sorted[rank]) << n << " elements, " << team << " threads";
    }
  set_threads(1);
}
TEST(count_digits, narrow_the_key_of_an_element) {
  check_digits_of<float>();
  check_digits_of<double>();
}

}  // namespace
}  // namespace tessera::kernels
