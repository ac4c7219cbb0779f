// Passes: Program -> Program. They take the program over: one of a thousand ops is copied nowhere.
#pragma once
#include <vector>

#include "program/program.hpp"

namespace tessera {

// Fuses chains of elementwise kernels, casts and broadcasts into single passes; drops values that are never
// read.
Program fuse(Program);

// Computes elementwise ops with the dims of 1 with which their results are read, so that one chain goes on.
Program move_dims_of_one(Program);

// Starts collectives as soon as their inputs exist, and joins independent small all-reduces into one message.
Program schedule(Program);

// Shrinks constant arrays that elementwise ops read to one element, read through strides of 0.
Program shrink_constants(Program);

// Reads one of several equal scalars among the leaves (the program's inputs), so that equal computations on
// them are shared, and x instead of x - 0, x / 1 and x * 1.
Program simplify_scalars(Program, const std::vector<Array>& leaves);

// Computes equal instructions on equal inputs once.
Program share_common(Program);

// Lets kernels that can fetch pieces of their operands during the computation do so, if moving the operands
// first would cost more memory than a few pieces (program/algorithms.hpp).
Program choose_algorithms(Program);

// Merges loops that compute the same values: a loop whose results are all among another's is replaced by that
// one (a gradient's forward loop, which keeps more). Drops results of loops that are never read.
Program merge_loops(Program);

// Combines sums that a loop only adds to over the ranks once, after the loop.
Program sink_reductions(Program);

// Applies `pass` to the parts of the program's branches and loops.
Program on_parts(Program, Program (*pass)(Program));

}  // namespace tessera
