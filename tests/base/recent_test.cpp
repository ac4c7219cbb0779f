#include "base/recent.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace tessera {
namespace {

TEST(RecentMap, what_nobody_asked_for_longest_goes_first) {
  RecentMap<std::string, int> map(2);
  map.insert("a", 1);
  map.insert("b", 2);
  EXPECT_NE(map.find("a"), nullptr);
  map.insert("c", 3);
  EXPECT_EQ(map.find("b"), nullptr);
  EXPECT_EQ(*map.find("a"), 1);
  EXPECT_EQ(*map.find("c"), 3);
}

TEST(RecentMap, never_holds_more_than_it_may) {
  RecentMap<int, int> map(8);
  for (int i = 0; i < 100; ++i) map.insert(i, i);
  EXPECT_EQ(map.size(), 8u);
  for (int i = 92; i < 100; ++i) EXPECT_EQ(*map.find(i), i);
}

TEST(RecentMap, a_known_key_gets_the_new_value) {
  RecentMap<int, std::string> map(1);
  map.insert(1, "old");
  EXPECT_EQ(map.insert(1, "new"), "new");
  EXPECT_EQ(map.size(), 1u);
}

TEST(RecentMap, values_leave_with_their_entry) {
  const auto shared = std::make_shared<int>(1);
  RecentMap<int, std::shared_ptr<int>> map(1);
  map.insert(1, shared);
  map.insert(2, nullptr);
  EXPECT_EQ(shared.use_count(), 1);
}

}  // namespace
}  // namespace tessera
