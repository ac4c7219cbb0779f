// Slices picked by a mask: the op behind x(mask), nonzero, unique and the set operations.
#pragma once
#include "graph/op.hpp"
#include "ops/create/scalar.hpp"

namespace tessera {

struct CompressParams {
  int batch;  // leading dims that mask and x share
  std::int64_t size;
  ScalarValue fill;
  template <class V> void fields(V&& visit) const {
    visit("batch", batch);
    visit("size", size);
    visit("fill", fill.is_integer ? std::complex<double>(static_cast<double>(fill.integer)) : fill.floating);
    visit("fill_integer", fill.integer);
  }
};

// mask [B.., n] and x [B.., n, R..] give [B.., size, R..]: the first `size` slices at which the mask is true,
// in order, padded with `fill`. Split along n, ranks send each chosen slice directly to the rank in whose
// block of the result it is.
Array compress_rows(const Array& mask, const Array& x, std::int64_t size, ScalarValue fill = {});

}  // namespace tessera
