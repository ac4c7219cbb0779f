// Ops whose result is an affine picture of their operands: slices, flips, rolls, pads, concatenations. All
// are one record with different pieces, executed as one exchange in which every rank receives exactly the
// elements that it lacks.
#pragma once
#include <string>
#include <vector>

#include "graph/op.hpp"
#include "mesh/remap.hpp"
#include "ops/create/scalar.hpp"

namespace tessera {

inline std::uint64_t field_hash(const Piece& p) {
  std::uint64_t h = mix(static_cast<std::uint64_t>(p.source), field_hash(p.to));
  return mix(mix(h, field_hash(p.offset)), field_hash(p.step));
}
// "0[3:1,2:-1]->[0:4,0:2]": source[start:step, ...] -> box of the result.
std::string field_text(const Piece&);

struct RemapParams {
  Shape shape;                // of the result
  std::vector<Piece> pieces;  // disjoint in the result
  ScalarValue fill = {};      // where no piece reaches
  std::vector<int> unsplit =
      {};  // dims of the result that are given up right after (x[3]): must not be split
  std::optional<Sharding> layout =
      {};  // of the result; otherwise that of the operand that makes the cheapest exchange
  template <class V> void fields(V&& visit) const {
    visit("shape", shape);
    visit("pieces", pieces);
    visit("fill", fill.is_integer ? std::complex<double>(static_cast<double>(fill.integer)) : fill.floating);
    visit("fill_integer", fill.integer);
    visit("unsplit", unsplit);
    visit("layout", layout);
  }
};

enum class RemapName { slice, flip, roll, pad, concatenate, tile, update_slice };

// Operands of one dtype and ndim. A dim keeps the mesh axes that it has in the operand.
Array remap(RemapName, RemapParams, std::vector<Array> operands);

// One piece that copies all of source `source` to the result at `at`.
Piece whole_piece(int source, const Shape&, const std::vector<std::int64_t>& at);
// x[start : start + step * count : step] in each dim.
RemapParams slice_params(const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& step,
                         const Shape& count);
// The transpose of a slice: g put where the slice came from, zeros elsewhere, in an array of this shape and
// layout.
Array unslice(const Array& g, const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& step,
              const Shape& shape, const std::optional<Sharding>& layout);

}  // namespace tessera
