// Memory shared by the ranks of a host.
#include "comm/host/host_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "comm/collectives/collectives.hpp"
#include "comm/mpi/communicator.hpp"
#include "support/no_more_files.hpp"

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

TEST(HostMemory, what_a_peer_writes_is_there) {
  if (!everybody_shares()) GTEST_SKIP() << "no rank shares memory with this one";
  for (int round = 0; round < 3; ++round) {  // from round 2 on blocks come from the pool, already mapped
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

int open_files() {
  int count = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

TEST(HostMemory, holds_one_file_however_many_blocks) {
  const int before = open_files();
  std::vector<Buffer> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(allocate_on_host(bytes / 8));
  EXPECT_EQ(open_files(), before);
}

TEST(HostMemory, is_shared_when_no_file_can_be_opened) {
  if (!everybody_shares()) GTEST_SKIP() << "no rank shares memory with this one";
  const test::NoMoreFiles limit;
  const Buffer block = allocate_on_host(bytes + 4096);
  std::memset(block.data(), world().rank() + 1, bytes);
  const auto places = addresses_of_all(block.data());
  barrier(world());
  for (std::size_t r = 0; r < places.size(); ++r) {
    ASSERT_TRUE(places[r].is_visible());
    EXPECT_EQ(static_cast<std::size_t>(map(places[r]).data()[bytes - 1]), r + 1);
  }
  barrier(world());
}

// After fork a child has its own copy of a block: neither process sees the other's writes or frees.
TEST(HostMemory, is_a_copy_in_a_child_after_fork) {
  const Buffer block = allocate_on_host(bytes);
  std::memset(block.data(), 3, bytes);
  auto freed = std::make_unique<Buffer>(allocate_on_host(bytes));
  std::memset(freed->data(), 4, bytes);
  int changed[2];
  ASSERT_EQ(pipe(changed), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    if (read(changed[0], &byte, 1) != 1) _exit(2);
    bool right = block.data()[0] == std::byte{3} && block.data()[bytes - 1] == std::byte{3};
    std::memset(block.data(), 7, bytes);
    freed.reset();
    right &= host_address(allocate_on_host(bytes).data()).is_visible() == false;
    _exit(right ? 0 : 1);
  }
  std::memset(block.data(), 5, bytes);
  ASSERT_EQ(write(changed[1], "x", 1), 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(block.data()[0], std::byte{5});
  EXPECT_EQ(block.data()[bytes - 1], std::byte{5});
  EXPECT_EQ(freed->data()[bytes / 2], std::byte{4});
  for (const int file : changed) close(file);
}

TEST(HostMemory, is_part_of_memory_use) {
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

TEST(HostMemory, ordinary_memory_has_no_address) {
  const Buffer small = allocate_on_host(100), ordinary = Buffer::allocate(bytes);
  EXPECT_FALSE(host_address(small.data()).is_visible());
  EXPECT_FALSE(host_address(ordinary.data()).is_visible());
  EXPECT_FALSE(host_address(nullptr).is_visible());
}

TEST(HostMemory, nobody_shares_with_ranks_that_are_not_there) {
  const int outside[] = {0, world().size()};
  EXPECT_FALSE(share_memory(outside));
  EXPECT_FALSE(share_memory({}));
}

}  // namespace
}  // namespace tessera::comm
