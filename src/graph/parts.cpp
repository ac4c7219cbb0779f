#include "graph/parts.hpp"

#include <map>

namespace tessera {
namespace {

std::map<const OpDef*, Parts>& known() {
  static std::map<const OpDef*, Parts> ops;
  return ops;
}

}  // namespace

HasParts::HasParts(const OpDef& op, Parts parts) { known()[&op] = parts; }

Parts parts_of(const OpDef& op) {
  if (is_elementwise(op) || (is_alias(op) && rule_of(op) != nullptr)) return Parts::all_dims;
  const auto found = known().find(&op);
  return found == known().end() ? Parts::none : found->second;
}

}  // namespace tessera
