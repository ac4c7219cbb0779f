// The free list: which freed block a request gets, and which blocks are released first beyond the limit.
#include "types/free_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tessera {
namespace {

using testing::ElementsAre;

struct FreeBlocks : testing::Test {
  FreeList<std::string> list;
  std::vector<std::string> released;
  void give(std::size_t capacity, std::string name) { list.give(capacity, std::move(name)); }
  std::string take(std::size_t bytes) {
    const auto found = list.take(bytes);
    return found ? found->block : "none";
  }
  auto release() {
    return [this](const auto& found) { released.push_back(found.block); };
  }
};

TEST_F(FreeBlocks, a_request_gets_the_smallest_that_is_large_enough) {
  give(100, "small"), give(200, "large"), give(150, "middle");
  EXPECT_EQ(take(120), "middle");
  EXPECT_EQ(take(120), "large");
  EXPECT_EQ(take(120), "none");
}

TEST_F(FreeBlocks, the_entry_of_a_size_that_was_taken_serves_another) {
  give(100, "small");
  EXPECT_EQ(take(100), "small");
  give(200, "large"), give(200, "also large");
  EXPECT_EQ(take(60), "none");
  EXPECT_EQ(take(150), "also large");
  EXPECT_EQ(take(150), "large");
  EXPECT_TRUE(list.empty());
  give(100, "small"), give(200, "large");
  EXPECT_EQ(take(60), "small");
}

TEST_F(FreeBlocks, none_that_would_waste_more_than_half_of_itself) {
  give(200, "block");
  EXPECT_EQ(take(99), "none");
  EXPECT_EQ(take(100), "block");
}

TEST_F(FreeBlocks, what_is_kept_is_counted) {
  give(100, "a"), give(100, "b");
  EXPECT_EQ(list.bytes(), 200);
  take(100);
  EXPECT_EQ(list.bytes(), 100);
  list.clear(release());
  EXPECT_EQ(list.bytes(), 0);
  EXPECT_TRUE(list.empty());
}

TEST_F(FreeBlocks, the_largest_go_first_and_the_size_in_use_last) {
  give(100, "small"), give(400, "in use now"), give(300, "large"), give(200, "middle");
  list.shrink(500, 400, release());
  EXPECT_THAT(released, ElementsAre("large", "middle"));
  list.shrink(0, 400, release());
  EXPECT_THAT(released, ElementsAre("large", "middle", "small", "in use now"));
}

TEST_F(FreeBlocks, near_sizes_share_a_capacity) {
  EXPECT_EQ(shared_capacity(1000, 64), 1024U);
  EXPECT_EQ(shared_capacity(900, 64), 1024U);
  EXPECT_EQ(shared_capacity(890, 64), 896U);
  EXPECT_EQ(shared_capacity(5000, 4096), 8192U);
  for (std::size_t bytes = 1; bytes < 100'000; bytes = bytes * 5 / 4 + 1) {
    EXPECT_GE(shared_capacity(bytes, 64), bytes);
    EXPECT_LT(shared_capacity(bytes, 64), bytes + bytes / 4 + 64);
  }
}

}  // namespace
}  // namespace tessera
