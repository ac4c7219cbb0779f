// The amount of memory that this rank may use.
#pragma once
#include <cstdint>
#include <string>

namespace tessera {

// TESSERA_MEM_LIMIT, or this rank's share of its host's memory.
std::int64_t memory_share();
// The reason why this rank cannot allocate `bytes` in addition to its live memory; "" if it can. Decided
// for this rank alone: see make_ready().
std::string memory_refusal(std::int64_t bytes, const std::string& what);
// Whether memory_refusal(bytes) would give a reason. Called before each run; makes no system calls while
// there is ample room.
bool exceeds_memory(std::int64_t bytes);
void check_memory(std::int64_t bytes, const std::string& what);  // MemoryError with that reason

}  // namespace tessera
