// For pools of other kinds of memory than malloc's: what they hold is part of memory_use(), and
// release_pooled_memory() reaches them.
#pragma once
#include <cstdint>

namespace tessera {

void count_other_memory(std::int64_t live_change, std::int64_t pooled_change);
void on_release_pooled_memory(void (*drop)());

}  // namespace tessera
