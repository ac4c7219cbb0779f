// Builds a pattern with each row on its owner from entries given on any rank.
#pragma once
#include <tessera/sparse.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "ops/sparse/pattern.hpp"

namespace tessera::sparse {

// The entries that one rank contributes, of any rows. None on a rank outside of the mesh.
struct LocalEntries {
  std::vector<std::int64_t> rows, columns;
  Dtype dtype = float32;          // dtype of the values; equal on all ranks
  std::vector<std::byte> values;  // one per entry
};

// The dtype in which given values are kept.
Dtype kept_dtype(Dtype given);
// The sharding of a vector with one element per row. ShapeError and ShardingError, from facts that are
// equal on all ranks.
Sharding checked_rows(const Shape& shape, const Sharding& sharding);
// Whether this rank holds rows, and which.
bool holds_rows(const Sharding& rows);
Range own_rows(const Sharding& rows, std::int64_t count);

// Collective over all ranks. IndexError for an entry outside of the shape.
Csr assemble(const Shape& shape, const Sharding& rows, LocalEntries mine);

}  // namespace tessera::sparse
