// For pools of memory from other sources than malloc: memory_use() includes them, and release_pooled_memory()
// empties them.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tessera {

void count_other_memory(std::int64_t live_change, std::int64_t pooled_change);
void on_release_pooled_memory(void (*drop)());

// From now on no block is reused or unmapped: messages that were cut off may still be written to it.
void stop_reusing_memory() noexcept;
bool memory_is_reused() noexcept;

#ifdef TESSERA_VERIFY
// Called before each allocation with its bytes; if it returns true, the allocation fails. For tests.
void refuse_memory_when(bool (*refuses)(std::size_t bytes));
#endif

}  // namespace tessera
