#include "program/workspace.hpp"

#include <map>

namespace tessera {
namespace {

// A registry: filled before main, constant afterwards.
std::map<const OpDef*, WorkspaceFunction>& workspaces() {
  static std::map<const OpDef*, WorkspaceFunction> registry;
  return registry;
}

}  // namespace

TakesWorkspace::TakesWorkspace(const OpDef& op, WorkspaceFunction function) {
  workspaces().emplace(&op, function);
}

WorkspaceFunction workspace_of(const OpDef& op) {
  const auto found = workspaces().find(&op);
  return found == workspaces().end() ? nullptr : found->second;
}

}  // namespace tessera
