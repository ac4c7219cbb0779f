// Program -> Program.
#pragma once
#include "program/program.hpp"

namespace tessera {

// Chains of elementwise kernels, casts and broadcasts become one pass each; what nobody reads is dropped.
Program fuse(const Program&);

// Collectives start as early as their input exists; independent small all-reduces become one message.
Program schedule(const Program&);

// Equal instructions on equal inputs once.
Program share_common(const Program&);

}  // namespace tessera
