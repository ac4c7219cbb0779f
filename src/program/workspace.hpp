// Memory that a kernel allocates while it runs, besides operands and results: for explain.
#pragma once
#include <span>

#include "program/program.hpp"

namespace tessera {

// Bytes for one rank's blocks.
using WorkspaceFunction = std::int64_t (*)(std::span<const Type> in, std::span<const Type> out,
                                           const Params&);

// Says that an op's kernel allocates such memory: a constant in the op's file, known before main.
struct TakesWorkspace {
  TakesWorkspace(const OpDef& op, WorkspaceFunction);
};
WorkspaceFunction workspace_of(const OpDef&);  // nullptr: none worth mentioning

}  // namespace tessera
