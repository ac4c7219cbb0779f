// Memory that a kernel takes for itself while it runs, beside operands and results: for explain.
#pragma once
#include <span>

#include "program/program.hpp"

namespace tessera {

// Bytes, of one rank's blocks.
using WorkspaceFunction = std::int64_t (*)(std::span<const Type> in, std::span<const Type> out,
                                           const Params&);

// Filled before main.
struct TakesWorkspace {
  TakesWorkspace(const OpDef& op, WorkspaceFunction);
};
WorkspaceFunction workspace_of(const OpDef&);  // nullptr: none worth a word

}  // namespace tessera
