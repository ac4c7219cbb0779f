// From entries that lie anywhere to a pattern whose rows lie with their owners.
#pragma once
#include <tessera/sparse.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "ops/sparse/pattern.hpp"

namespace tessera::sparse {

// The entries that one rank brings, of any rows. None on a rank outside of the mesh.
struct LocalEntries {
  std::vector<std::int64_t> rows, columns;
  Dtype dtype = float32;          // of the values; the same on all ranks
  std::vector<std::byte> values;  // as many
};

// ShapeError, ShardingError: what every rank knows. The sharding of a vector with an element per row.
Sharding checked_rows(const Shape& shape, const Sharding& sharding);
// Whether this rank holds a part, and which rows.
bool holds_rows(const Sharding& rows);
Range own_rows(const Sharding& rows, std::int64_t count);

// Collective over all ranks. IndexError for an entry outside of the shape.
Csr assemble(const Shape& shape, const Sharding& rows, LocalEntries mine);

}  // namespace tessera::sparse
