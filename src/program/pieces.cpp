#include "program/pieces.hpp"

namespace tessera {
namespace {

// A registry: filled before main, constant afterwards.
std::vector<std::pair<const OpDef*, PiecesFunction>>& pieces_registry() {
  static std::vector<std::pair<const OpDef*, PiecesFunction>> registry;
  return registry;
}

}  // namespace

CanWorkByPieces::CanWorkByPieces(const OpDef& op, PiecesFunction function) {
  pieces_registry().emplace_back(&op, function);
}

PiecesFunction pieces_of(const OpDef& op) {
  for (const auto& [known, function] : pieces_registry())
    if (known == &op) return function;
  return nullptr;
}

}  // namespace tessera
