// Many keys searched in one sorted table, by vectors.
#pragma once
#include <cstdint>

namespace tessera::kernels {

// out[i] = the number of entries of the table that are less than keys[i], or with `right` at most keys[i].
// n < 2^31 for 32 bits.
void search_table(bool right, const std::int32_t* table, std::int64_t n, const std::int32_t* keys,
                  std::int64_t count, std::int64_t* out);
void search_table(bool right, const std::int64_t* table, std::int64_t n, const std::int64_t* keys,
                  std::int64_t count, std::int64_t* out);

}  // namespace tessera::kernels
