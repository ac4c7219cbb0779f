#include "program/algorithms.hpp"

namespace tessera {
namespace {

// A registry: filled before main, constant afterwards.
std::vector<std::pair<const OpDef*, ChooseAlgorithm>>& pieces_registry() {
  static std::vector<std::pair<const OpDef*, ChooseAlgorithm>> registry;
  return registry;
}

}  // namespace

CanWorkByPieces::CanWorkByPieces(const OpDef& op, ChooseAlgorithm function) {
  pieces_registry().emplace_back(&op, function);
}

ChooseAlgorithm pieces_of(const OpDef& op) {
  for (const auto& [known, function] : pieces_registry())
    if (known == &op) return function;
  return nullptr;
}

}  // namespace tessera
