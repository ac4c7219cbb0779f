// The edges alone decide a value's bin, to the last bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/sort/sort.hpp"
#include "kernels/values.hpp"

namespace tessera::kernels {
namespace {

template <class T>
std::vector<std::int32_t> counted_by_search(const std::vector<T>& edges, const std::vector<T>& x) {
  std::vector<std::int32_t> counts(edges.size());
  for (const T v : x)
    if (v >= edges.front() && v <= edges.back())
      ++counts[std::upper_bound(edges.begin(), edges.end(), v) - edges.begin() - 1];
  return counts;
}

template <class T> void expect_counts(const std::vector<T>& edges, const char* what) {
  std::mt19937 random(11);
  const T width = edges.back() - edges.front();
  std::uniform_real_distribution<T> about(edges.front() - width / 8, edges.back() + width / 8),
      inside(edges.front(), edges.back());
  constexpr T infinity = std::numeric_limits<T>::infinity();
  std::vector<T> x;
  for (int i = 0; i < 20'000; ++i) x.push_back(i % 3 ? inside(random) : about(random));
  for (const T edge : edges)
    for (const T v : {edge, std::nextafter(edge, -infinity), std::nextafter(edge, infinity)}) x.push_back(v);
  x.insert(x.end(), {T(0), -T(0), infinity, -infinity, std::numeric_limits<T>::quiet_NaN(),
                     std::numeric_limits<T>::max(), std::numeric_limits<T>::lowest(),
                     std::numeric_limits<T>::denorm_min()});
  for (int i = 0; i < 1000; ++i) x.push_back(inside(random));
  std::vector<std::int32_t> counts(edges.size(), -1);
  const auto n = static_cast<std::int64_t>(x.size());
  count_bins(dtype_of<T>(), edges.data(), static_cast<std::int64_t>(edges.size()), x.data(), n,
             counts.data());
  ASSERT_EQ(counts, counted_by_search(edges, x)) << what << " " << name(dtype_of<T>());
}

template <class T> void expect_counts_of_many_edges() {
  for (const int bins : {1, 2, 3, 10, 64, 1000, 70'001})
    for (const auto& [low, high] : {std::pair{0.0, 1.0}, {-3.7, 11.2}, {1e6, 1e6 + 3}, {-1e-20, 1e-20}}) {
      std::vector<T> edges;
      for (int i = 0; i <= bins; ++i) edges.push_back(static_cast<T>(low + (high - low) * i / bins));
      edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
      if (edges.size() < 2) continue;
      expect_counts(edges, "equal steps");
      std::mt19937 random(3);  // near equally spaced positions, and far from them
      for (const double by : {1e-4, 0.3, 0.9}) {
        auto moved = edges;
        for (std::size_t i = 1; i + 1 < moved.size(); ++i)
          moved[i] +=
              static_cast<T>(by * (high - low) / bins * (static_cast<double>(random() % 1000) / 1000 - 0.5));
        std::sort(moved.begin(), moved.end());
        expect_counts(moved, "uneven steps");
      }
    }
  expect_counts<T>({0, 1, 10, 100, 1000}, "powers");
}

TEST(count_bins, the_edges_decide) {
  expect_counts_of_many_edges<float>();
  expect_counts_of_many_edges<double>();
}

}  // namespace
}  // namespace tessera::kernels
