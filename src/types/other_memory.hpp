// For pools of memory from other sources than malloc: memory_use() includes them, and release_pooled_memory()
// empties them.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tessera {

void count_other_memory(std::int64_t live_change, std::int64_t pooled_change);
void on_release_pooled_memory(void (*drop)());

// While it exists, pooled blocks of other sizes are released before fresh memory is taken, so that live and
// pooled bytes together stay within `bytes` as long as the live ones do. If several exist, the smallest bound
// applies.
class PoolBound {
 public:
  explicit PoolBound(std::int64_t bytes);
  ~PoolBound();
  PoolBound(const PoolBound&) = delete;
  PoolBound& operator=(const PoolBound&) = delete;

 private:
  std::int64_t before_;
};
// For other pools. The largest block to be reused for a request of `bytes`, whose own capacity this is.
std::size_t most_reused(std::size_t bytes, std::size_t capacity);
// The bytes by which a fresh block would exceed the bound; 0 if there is none.
std::int64_t bytes_over_bound(std::size_t fresh);
void shrink_malloc_pool(std::int64_t by);

// From now on no block is reused or unmapped: messages that were cut off may still be written to it.
void stop_reusing_memory() noexcept;
bool memory_is_reused() noexcept;

#ifdef TESSERA_VERIFY
// Called before each allocation with its bytes; if it returns true, the allocation fails. For tests.
void refuse_memory_when(bool (*refuses)(std::size_t bytes));
#endif

}  // namespace tessera
