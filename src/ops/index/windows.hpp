// Ops whose result block needs a range of the operand that does not follow the operand's block boundaries:
// dilation, repetition, convolution. Each rank receives exactly the range that it needs.
//
//   operand   [0 1 2 | 3 4 5]     stride 2: result block 0 (0..4) needs 0..2, block 1 (5..9) needs 3..5
//   windows   [0 1 2 | 3 4 5]     with a kernel of 3: 0..3 and 3..5, so the second block's first row is sent
#pragma once
#include <functional>
#include <vector>

#include "program/builder.hpp"

namespace tessera {

// v as an array of p windows along `dim`, one after the other, each as long as the longest; window `part`
// starts with the operand's elements [range.start, range.stop) of that part (within the operand). Other dims
// get the layout of `like`, which also determines the axes that split dim into the p parts. If dim is not
// split and the single window is everything, nothing is copied.
int fetch_windows(ProgramBuilder&, int v, int dim, const Sharding& like,
                  const std::function<Range(std::int64_t part, std::int64_t parts)>& window);

// The number of blocks of `dim`.
std::int64_t parts_along(const Sharding&, int dim, int ndim);

}  // namespace tessera
