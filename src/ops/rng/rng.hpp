// Ops that draw: their first input is an array of keys (..., 2) of uint32, their result has the keys' leading
// dims and then `shape`.
//
// Each rank computes the elements of its tile's box from their global positions: no layout needs
// communication, and all give the same bits.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "graph/op.hpp"
#include "kernels/random/rejection.hpp"
#include "types/extents.hpp"

namespace tessera::rng {

using kernels::Words;
using random::Threefry;

// ---- keys: (..., 2) -> (..., 2) ----
Array split_one(const Array& key, std::uint64_t i, std::uint64_t n, Threefry);  // key i of n
Array split_many(const Array& key, Shape shape, Threefry);                      // (..., shape, 2)
// The key that split_many made keys (n, 2) of, while it is known: a few of many keys are made of it alone.
struct KeysOfOne {
  Array key;
  std::uint64_t count;
  Threefry mode;
};
std::optional<KeysOfOne> source_of_split(const Array& keys);
Array fold_in(const Array& key, const Array& data);  // data: integers of shape (...)

// ---- draws: (..., 2) -> (..., shape) ----
// A draw may be one slab of a larger draw: slab i of n has the values of elements (i, ...) of a draw of shape
// (n, *shape).
struct Slab {
  std::int64_t i = 0, n = 0;  // n = 0: the draw itself
};
Array bits(const Array& key, Shape shape, Dtype, Threefry);
Array uniform(const Array& key, Shape shape, Dtype, double minval, double maxval, Threefry, Slab = {});
// sqrt(2) * erf_inv of a uniform in [minval, maxval).
Array normal(const Array& key, Shape shape, Dtype, double minval, double maxval, Threefry);
// minval + k, k < span; span 0: the full range of the dtype.
Array integers(const Array& key, Shape shape, Dtype, std::int64_t minval, std::uint64_t span, Threefry);

// ---- draws with parameters, which have the shape of the result: (..., 2), (..., shape) -> (..., shape) ----
Array gamma(const Array& key, const Array& alpha, kernels::GammaSpace, Threefry);
Array poisson(const Array& key, const Array& lambda, Dtype, Threefry);
Array binomial(const Array& key, const Array& count, const Array& p, Threefry);

// ---- shared by the records ----
// Batch rule: a batch of keys is one more leading dim.
Batched batch_keys(const BatchArgs&);
inline Cotangents no_cotangents(const VjpArgs& v) { return Cotangents(v.in.size()); }  // keys are integers
Shape leading_dims(const Shape& keys);  // leading dims of the keys (..., 2): all but the last
std::span<const Words> keys_of(const Tile&);
// The part of the result's box, or of its global shape, that belongs to one key.
Box box_of_one_key(const Tile& out, const Tile& keys);
Shape shape_of_one_key(const Tile& out, const Tile& keys);

}  // namespace tessera::rng
