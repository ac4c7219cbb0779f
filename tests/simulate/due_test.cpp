// The order of time: the heap, and the lines beside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <tuple>
#include <vector>

#include "simulate/due.hpp"

namespace tessera {
namespace {

TEST(DueHeap, gives_the_earliest_and_of_one_time_the_first) {
  std::mt19937 numbers(1);
  for (const std::size_t count : {1U, 2U, 5U, 6U, 21U, 1000U}) {
    DueHeap heap;
    std::vector<std::tuple<double, std::uint64_t, std::size_t>> all;  // the time, the number, whose
    for (std::uint64_t n = 0; n < count; ++n) {
      all.emplace_back(static_cast<double>(numbers() % 7), n, numbers() % (1U << Due::bits_of_whose));
      heap.push({std::get<0>(all.back()), n, std::get<2>(all.back())});
    }
    std::sort(all.begin(), all.end());
    for (const auto& [at_s, number, whose] : all) {
      ASSERT_FALSE(heap.empty());
      const Due due = heap.take();
      EXPECT_EQ(due.at_s(), at_s);
      EXPECT_EQ(due.whose(), whose);
    }
    EXPECT_TRUE(heap.empty());
  }
}

TEST(DueHeap, what_is_pushed_after_a_take_finds_its_place) {
  DueHeap heap;
  for (std::uint64_t n = 0; n < 10; ++n) heap.push({static_cast<double>(n), n, n});
  for (std::uint64_t n = 10; n < 100; ++n) {  // ten that take turns
    EXPECT_EQ(heap.take().whose(), n % 10);
    heap.push({static_cast<double>(n), n, n % 10});
  }
  for (int left = 10; left > 0; --left) {
    EXPECT_FALSE(heap.empty());
    heap.take();
  }
  EXPECT_TRUE(heap.empty());
  heap.push({3, 200, 7});
  EXPECT_EQ(heap.take().whose(), 7U);
}

TEST(Line, keeps_the_order_while_it_grows) {
  Line<int> line;
  int in = 0, out = 0;
  for (const int pushed : {3, 20, 1, 100, 7})
    for (int n = 0; n < pushed; ++n) {
      line.push(in++), line.push(in++);
      ASSERT_EQ(line.front(), out++);
      line.pop();
    }
  while (!line.empty()) {
    ASSERT_EQ(line.front(), out++);
    line.pop();
  }
  EXPECT_EQ(out, in);
}

}  // namespace
}  // namespace tessera
