// The pool of freed memory that later arrays reuse.
#include "types/buffer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tessera {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

class Pool : public testing::Test {
 protected:
  void SetUp() override { release_pooled_memory(), reset_peak_memory(); }
  void TearDown() override { release_pooled_memory(); }
};

TEST_F(Pool, a_block_given_back_is_taken_by_the_next_of_its_size) {
  const std::byte* first = Buffer::allocate(3 * mib).data();
  EXPECT_EQ(Buffer::allocate(3 * mib).data(), first);
}

// Under the address sanitizer the unrequested tail of a block is poisoned.
TEST_F(Pool, a_block_with_an_end_that_nobody_asked_for_is_given_back_and_taken_again) {
  const std::byte* first = Buffer::allocate(5001).data();
  for (const std::size_t bytes : {std::size_t{4999}, std::size_t{4001}, std::size_t{5001}}) {
    Buffer block = Buffer::allocate(bytes);
    EXPECT_EQ(block.data(), first);
    std::fill_n(block.data(), bytes, std::byte{7});
    EXPECT_EQ(block.data()[bytes - 1], std::byte{7});
  }
}

// Alternates arrays of 256 MiB and 120 MiB: when the pool exceeds its limit, the most recently used block
// must stay.
TEST_F(Pool, the_size_in_use_stays_when_others_go) {
  for (int turn = 0; turn < 3; ++turn) {
    Buffer::allocate(256 * mib).reset();
    Buffer::allocate(120 * mib).reset();
    const auto use = memory_use();
    EXPECT_LE(use.pooled_bytes, use.peak_bytes + std::int64_t{64 * mib});
    EXPECT_GE(use.pooled_bytes, std::int64_t{120 * mib});
  }
}

}  // namespace
}  // namespace tessera
