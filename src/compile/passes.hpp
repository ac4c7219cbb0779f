// Program -> Program.
#pragma once
#include "program/program.hpp"

namespace tessera {

// Chains of elementwise kernels, casts and broadcasts become one pass each; what nobody reads is dropped.
Program fuse(const Program&);

// Collectives start as early as their input exists; independent small all-reduces become one message.
Program schedule(const Program&);

// Elementwise ops read one element of a constant array through strides of 0; the array itself is not made
// for them.
Program shrink_constants(const Program&);

// Equal instructions on equal inputs once.
Program share_common(const Program&);

// Kernels that can fetch pieces of their operands while they compute do so, where moving them first costs
// more memory than a few pieces (program/pieces.hpp).
Program work_by_pieces(const Program&);

// Loops that compute the same values once: a loop whose results are all among another's (a gradient's
// forward loop, which keeps more) gives way to it. Results of loops that nobody reads are not computed.
Program merge_loops(const Program&);

// Sums that loops only add to are combined over the ranks once, behind the loop.
Program sink_reductions(const Program&);

// The program with `pass` applied to the parts of its branches and loops.
Program on_parts(const Program&, Program (*pass)(const Program&));

}  // namespace tessera
