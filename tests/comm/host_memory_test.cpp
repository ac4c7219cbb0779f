// Memory that the ranks of a host see in each other.
#include "comm/host/host_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "comm/collectives/collectives.hpp"
#include "comm/mpi/communicator.hpp"

namespace tessera::comm {
namespace {

constexpr std::size_t bytes = std::size_t{3} << 20;

std::vector<HostAddress> addresses_of_all(const void* place) {
  const auto mine = host_address(place);
  std::vector<HostAddress> all(world().size());
  all_gather(world(), &mine, sizeof mine, all.data());
  return all;
}

bool everybody_shares() { return world().size() > 1 && share_memory(world().device_ids()); }

TEST(HostMemory, WhatAPeerWritesIsThere) {
  if (!everybody_shares()) GTEST_SKIP() << "no rank shares memory with this one";
  for (int round = 0; round < 3;
       ++round) {  // from the second on blocks come from the pool, and are mapped already
    const Buffer block = allocate_on_host(bytes);
    std::memset(block.data(), 0xff, bytes);
    const std::size_t shift = 4096 + 24;  // an address may point into a block
    const auto places = addresses_of_all(block.data() + shift);
    const auto me = static_cast<std::size_t>(world().rank());
    for (const auto& place : places) {
      ASSERT_TRUE(place.is_visible());
      map(place).data()[me] = static_cast<std::byte>(me + static_cast<std::size_t>(round));
    }
    barrier(world());
    for (std::size_t r = 0; r < places.size(); ++r)
      EXPECT_EQ(static_cast<std::size_t>(block.data()[shift + r]), r + static_cast<std::size_t>(round));
    EXPECT_EQ(static_cast<int>(block.data()[shift - 1]), 0xff);
    barrier(world());
  }
}

// Each block holds a file: the soft limit of open files, 1024 as a rule, is raised as far as the system lets
// it.
TEST(HostMemory, AsManyBlocksAsTheHardLimitOfFilesAllows) {
  if (!everybody_shares()) GTEST_SKIP() << "no rank shares memory with this one";
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, 65536));
}

TEST(HostMemory, BlocksThatAreKeptMakeRoomWhenFilesRunOut) {
  if (!everybody_shares()) GTEST_SKIP() << "no rank shares memory with this one";
  { const Buffer kept = allocate_on_host(bytes / 8); }  // freed: kept for the next of its size, with its file
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest_free = open("/dev/null", O_RDONLY);
  close(lowest_free);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(lowest_free);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);  // no file more than there are
  const Buffer block = allocate_on_host(bytes);
  const bool is_shared = host_address(block.data()).is_visible();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(block.data() != nullptr);
  EXPECT_TRUE(is_shared);
}

TEST(HostMemory, IsPartOfMemoryUse) {
  release_pooled_memory();
  const auto before = memory_use();
  {
    const Buffer block = allocate_on_host(bytes);
    EXPECT_GE(memory_use().live_bytes, before.live_bytes + static_cast<std::int64_t>(bytes));
  }
  EXPECT_EQ(memory_use().live_bytes, before.live_bytes);
  EXPECT_GE(memory_use().pooled_bytes, static_cast<std::int64_t>(bytes));
  release_pooled_memory();
  EXPECT_EQ(memory_use().pooled_bytes, 0);
}

TEST(HostMemory, OrdinaryMemoryHasNoAddress) {
  const Buffer small = allocate_on_host(100), ordinary = Buffer::allocate(bytes);
  EXPECT_FALSE(host_address(small.data()).is_visible());
  EXPECT_FALSE(host_address(ordinary.data()).is_visible());
  EXPECT_FALSE(host_address(nullptr).is_visible());
}

TEST(HostMemory, NobodySharesWithRanksThatAreNotThere) {
  const int outside[] = {0, world().size()};
  EXPECT_FALSE(share_memory(outside));
  EXPECT_FALSE(share_memory({}));
}

}  // namespace
}  // namespace tessera::comm
