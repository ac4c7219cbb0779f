// The sizes of the tree's leaves (tree.hpp) and of what a pass keeps in the first-level cache.
#pragma once
#include <cstdint>

namespace tessera::kernels {

inline constexpr int leaf_level = 6;
inline constexpr std::int64_t leaf = std::int64_t{1} << leaf_level, leaf_rows = 4,
                              leaf_columns = leaf / leaf_rows;
inline constexpr std::int64_t cached_elements = 4096, line_elements = 16384;

}  // namespace tessera::kernels
