// For pools of other kinds of memory than malloc's: what they hold is part of memory_use(), and
// release_pooled_memory() reaches them.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tessera {

void count_other_memory(std::int64_t live_change, std::int64_t pooled_change);
void on_release_pooled_memory(void (*drop)());

// From now on no block is handed out twice, nor unmapped: messages that were cut off may still arrive in it.
void stop_reusing_memory() noexcept;
bool memory_is_reused() noexcept;

#ifdef TESSERA_VERIFY
// Asked before each block is handed out, with its bytes: true makes the allocation fail. For tests.
void refuse_memory_when(bool (*refuses)(std::size_t bytes));
#endif

}  // namespace tessera
