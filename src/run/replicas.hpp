// TESSERA_CHECK=2: checks that ranks with the same block of a value hold the same bits.
#pragma once
#include <span>

#include "run/executable.hpp"

namespace tessera {

// Compares a program's inputs before it runs. Collective over its devices; DisagreementError on all of them.
// Costs a pass over the inputs. Does nothing below TESSERA_CHECK=2.
void compare_replicas(const Executable&, std::span<const Buffer> inputs, int me);

}  // namespace tessera
