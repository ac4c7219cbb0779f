// tessera is used from one thread: a call from a second one is an error there and has no effect on the first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/tessera.hpp>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace tessera {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

std::string error_on_another_thread(const std::function<void()>& work) {
  std::string text = "no error";
  std::thread([&] {
    try {
      work();
    } catch (const ThreadError& error) {
      text = error.what();
    }
  }).join();
  return text;
}

Array split_arange(std::int64_t n) {
  return device_put(arange(static_cast<int>(n)), make_mesh({device_count()}, {"x"}), P("x"));
}

TEST(Threads, recording_on_a_second_one_is_an_error_that_names_both_and_the_line) {
  const Array x = split_arange(24);
  const std::string text = error_on_another_thread([&] { x + x; });
  EXPECT_THAT(text, ContainsRegex("^add at thread_test.cpp:[0-9]+ was called on thread [0-9]+"));
  EXPECT_THAT(text, ContainsRegex("but thread [0-9]+ .*started the runtime"));
  EXPECT_THAT(text, HasSubstr("Hand the work to that thread"));
}

TEST(Threads, evaluation_on_a_second_one_is_an_error_and_the_value_comes_here_all_the_same) {
  const Array y = split_arange(24) * 2;
  EXPECT_THAT(error_on_another_thread([&] { eval({y}); }), HasSubstr("was called on thread"));
  EXPECT_EQ(to_vector<int>(y)[23], 46);
}

TEST(Threads, reading_a_value_on_a_second_one_is_an_error) {
  const Array x = split_arange(24);
  EXPECT_THAT(error_on_another_thread([&] { to_vector<int>(x); }), HasSubstr("was called on thread"));
}

TEST(Threads, making_an_array_on_a_second_one_is_an_error) {
  EXPECT_THAT(error_on_another_thread([] { zeros({4}); }), HasSubstr("was called on thread"));
  EXPECT_THAT(error_on_another_thread([] { array({1.f, 2.f}); }), HasSubstr("was called on thread"));
}

TEST(Threads, transformed_functions_refuse_a_second_one) {
  const Array x = split_arange(24);
  const auto twice = [](Array a) { return a * 2; };
  const auto jitted = jit(twice);
  jitted(x);
  EXPECT_THAT(error_on_another_thread([&] { jitted(x); }), HasSubstr("jit was called on thread"));
  EXPECT_THAT(error_on_another_thread([&] { jit(twice)(x); }), HasSubstr("jit was called on thread"));
  EXPECT_THAT(error_on_another_thread([&] { vmap(twice)(x); }), HasSubstr("was called on thread"));
  EXPECT_THAT(error_on_another_thread([&] { explain(x); }), HasSubstr("was called on thread"));
}

// Uses shapes without a cached plan, because the race was in the plan cache.
TEST(Threads, many_shapes_on_two_at_once_give_right_values_here_and_errors_there) {
  const Array theirs = split_arange(24);
  std::atomic<int> refused{0}, wrong_there{0};
  std::atomic<bool> stop{false};
  std::thread second([&] {
    while (!stop) {
      try {
        eval({theirs + 1});
        ++wrong_there;
      } catch (const ThreadError&) {
        ++refused;
      }
    }
  });
  int wrong_here = 0;
  for (int n = 1; n <= 100; ++n) {
    const std::int64_t size = n * device_count();
    const Array total = sum(split_arange(size) * 2);
    wrong_here += item<int>(total) != size * (size - 1);
  }
  while (refused == 0) std::this_thread::yield();
  stop = true;
  second.join();
  EXPECT_EQ(wrong_here, 0);
  EXPECT_EQ(wrong_there, 0);
}

TEST(Threads, handles_may_be_copied_and_released_on_a_second_one_while_this_one_computes) {
  std::vector<std::vector<Array>> shares;
  Array last = split_arange(24);
  for (int i = 0; i < 50; ++i) {
    std::vector<Array> share;
    for (int k = 0; k < 20; ++k) share.push_back(last = last + 1);
    shares.push_back(std::move(share));
  }
  std::thread releases([shares = std::move(shares)]() mutable {
    for (auto& share : shares) {
      std::vector<Array> copies(share.rbegin(), share.rend());
      share.clear();
    }
  });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(item<int>(sum(split_arange(24) + i)), 23 * 12 + 24 * i);
  releases.join();
  EXPECT_EQ(item<int>(last(0)), 1000);
}

}  // namespace
}  // namespace tessera
