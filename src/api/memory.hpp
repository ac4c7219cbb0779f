// How much memory this rank may take.
#pragma once
#include <cstdint>
#include <string>

namespace tessera {

// Why this rank cannot take so many bytes beside what lives already; "" where it can. Decided for this rank:
// see make_ready().
std::string memory_refusal(std::int64_t bytes, const std::string& what);
// The same question before each run, which costs no look at the system while there is room by far.
bool exceeds_memory(std::int64_t bytes);
void check_memory(std::int64_t bytes, const std::string& what);  // MemoryError with that text

}  // namespace tessera
