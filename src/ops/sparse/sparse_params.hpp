// Params, layouts and batches that the ops on sparse matrices share.
#pragma once
#include "graph/op.hpp"
#include "graph/params.hpp"
#include "ops/sparse/pattern.hpp"

namespace tessera {

struct SparseParams {
  PatternPtr pattern;
  template <class V> void fields(V&& visit) const {
    visit("rows", pattern->rows);
    visit("columns", pattern->columns);
    visit("entries", pattern->entries);
    visit("width", pattern->width);
    visit("sharding", pattern->sharding);
    visit("digest", pattern->digest);
  }
};
inline const SparsePattern& pattern_of(const Params& p) { return *p.as<SparseParams>().pattern; }

std::int64_t width_of(const Shape& block);  // elements of a row
// The first dim split as the rows, the others as `given` has them.
Sharding split_first(const SparsePattern&, const std::optional<Sharding>& given, int ndim);
// ShardingError in a mapped function that has an axis of the rows for itself.
void check_axes(const PlaceArgs&, const SparsePattern&);
// (values, vectors) -> vectors, whose trailing dims stay where they are.
Placement place_product(const PlaceArgs&, const SparsePattern&);
// More vectors for one matrix are more columns.
Batched batch_columns(const BatchArgs&);
std::optional<Mesh> commit_to_pattern(const Params&);
// Other names for the same devices in the same order become the pattern's mesh.
Array on_pattern_mesh(const SparsePattern&, const Array& x);

}  // namespace tessera
