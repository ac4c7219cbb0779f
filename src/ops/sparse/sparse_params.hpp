// Params, layouts and batch rules shared by the ops on sparse matrices.
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
// The first dim split as the rows, the others as in `given`.
Sharding split_first(const SparsePattern&, const std::optional<Sharding>& given, int ndim);
// ShardingError in a mapped function for which an axis of the rows is manual.
void check_axes(const PlacementArgs&, const SparsePattern&);
// (values, vectors) -> vectors, whose trailing dims keep their layout.
Placement place_product(const PlacementArgs&, const SparsePattern&);
// More vectors for one matrix become more columns.
Batched batch_columns(const BatchArgs&);
std::optional<Mesh> commit_to_pattern(const Params&);
// Moves x to the pattern's mesh if its own has the same devices in the same order under other names.
Array on_pattern_mesh(const SparsePattern&, const Array& x);

}  // namespace tessera
