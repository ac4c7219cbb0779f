// Ways of combining several values into one: used by sharding rules, kernels, and messages between ranks.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

// bit_and, bit_or, bit_xor: between ranks only. count_nonzero, logsumexp: in kernels only.
enum class ReduceKind { sum, prod, max, min, any, all, bit_and, bit_or, bit_xor, count_nonzero, logsumexp };
inline constexpr int reduce_kind_count = 11;

// The part of a line's tree (kernels/reduce/tree.hpp) that a block of the line gives: `rows` rows of nodes,
// or, for 0, the root of a block that is the whole line.
struct TreePart {
  std::int64_t end_of_leaves = 0, rows = 0;
};

const char* name(ReduceKind);
// nullopt for an unknown word.
std::optional<ReduceKind> reduce_kind_named(std::string_view word);

}  // namespace tessera
