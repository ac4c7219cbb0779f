// Slices picked by a mask: the op behind x(mask), nonzero, unique and the set operations.
#pragma once
#include "graph/op.hpp"
#include "ops/create/scalar.hpp"

namespace tessera {

// mask [B.., n] and x [B.., n, R..] give [B.., size, R..]: the first `size` slices at which the mask is true,
// in order, padded with `fill`. Split along n, ranks send each chosen slice directly to the rank in whose
// block of the result it is.
Array compress_rows(const Array& mask, const Array& x, std::int64_t size, ScalarValue fill = {});

}  // namespace tessera
