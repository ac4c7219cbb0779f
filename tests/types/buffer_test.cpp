// Memory that arrays gave back and that the next ones take.
#include "types/buffer.hpp"

#include <gtest/gtest.h>

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

// Arrays of 256 MiB and of 120 MiB by turns: what was used last is not among what goes when the pool holds
// too much.
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
