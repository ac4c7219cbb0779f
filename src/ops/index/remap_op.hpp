// remap: the op behind slices, flips, rolls, pads, tiles, concatenations and updates of slices, whose results
// are affine pictures of their operands. It runs as one exchange in which every rank receives exactly the
// elements that it lacks.
#pragma once
#include <string>
#include <vector>

#include "graph/op.hpp"
#include "mesh/remap.hpp"
#include "ops/create/scalar.hpp"

namespace tessera {

inline std::uint64_t field_hash(const RemapPiece& p) {
  std::uint64_t h = mix(static_cast<std::uint64_t>(p.source), field_hash(p.to));
  return mix(mix(h, field_hash(p.offset)), field_hash(p.step));
}
// "0[3:1,2:-1]->[0:4,0:2]": source[start:step, ...] -> box of the result.
std::string field_text(const RemapPiece&);

struct RemapParams {
  Shape shape;                     // shape of the result
  std::vector<RemapPiece> pieces;  // disjoint in the result
  ScalarValue fill = {};           // for elements that no piece covers
  std::vector<int> unsplit = {};   // dims of the result that a reshape removes next (x[3]): not split
  std::optional<Sharding> layout =
      {};  // layout of the result; default: the operand's layout that makes the exchange cheapest
  template <class V> void fields(V&& visit) const {
    visit("shape", shape);
    visit("pieces", pieces);
    visit("fill", fill);
    visit("unsplit", unsplit);
    visit("layout", layout);
  }
};

// Operands of one dtype and ndim. A dim keeps the mesh axes that it has in the operand.
Array remap(RemapParams, std::vector<Array> operands);

// One piece that copies all of source `source` to the result at `at`.
RemapPiece whole_piece(int source, const Shape&, const std::vector<std::int64_t>& at);
// x[start : start + step * count : step] in each dim.
RemapParams slice_params(const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& step,
                         const Shape& count);
// The transpose of a slice: an array of this shape and layout with g at the slice's positions, zeros
// elsewhere.
Array unslice(const Array& g, const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& step,
              const Shape& shape, const std::optional<Sharding>& layout);

}  // namespace tessera
