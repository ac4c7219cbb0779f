#include "types/reduce_kind.hpp"

#include <algorithm>
#include <iterator>

namespace tessera {
namespace {

constexpr const char* kind_names[] = {"sum",     "prod",   "max",     "min",           "any",      "all",
                                      "bit_and", "bit_or", "bit_xor", "count_nonzero", "logsumexp"};
static_assert(std::size(kind_names) == reduce_kind_count);

}  // namespace

const char* name(ReduceKind kind) { return kind_names[static_cast<int>(kind)]; }

std::optional<ReduceKind> reduce_kind_named(std::string_view word) {
  const auto found = std::find(std::begin(kind_names), std::end(kind_names), word);
  if (found == std::end(kind_names)) return std::nullopt;
  return static_cast<ReduceKind>(found - std::begin(kind_names));
}

}  // namespace tessera
