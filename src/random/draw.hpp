// Checks of key, shape and dtype, and recorded draws: shared by the distributions.
#pragma once
#include <tessera/random.hpp>

#include "ops/rng/rng.hpp"

namespace tessera::random {

// The words of a key, if every rank holds them on the host: uncommitted, computed, outside mapped functions.
std::optional<rng::Words> words_on_host(const Key&);
Key key_from_words(rng::Words);
// Key i, or keys i, of a batch.
Key key_at(const Key& batch, std::int64_t i, Where);

// ShapeError unless it is one key (2,), DtypeError unless it is uint32.
void check_key(const Key&);
void check_floating(Dtype);
void check_integer(Dtype);
void check_shape(const Shape&, Dtype);
// All of the above, for a distribution of real numbers.
void check_draw(const Key&, const Shape&, Dtype);
// A parameter converted to the result's dtype. DtypeError if that would lose digits or an imaginary part.
Array parameter(const Array&, Dtype);

// The shape to draw: `shape`, or the parameters' shape. ShapeError if the parameters do not broadcast to it.
Shape drawn_shape(const std::optional<Shape>& shape, const std::vector<Array>& parameters);
// The same, after the checks of key, parameters, shape and dtype.
Shape checked_shape(const Key&, const DrawShape&, const std::vector<Array>& parameters, Dtype);

// Draws with checked arguments, for derived distributions.
Array uniform_of(const Key&, const Shape&, Dtype, double minval, double maxval);
Array normal_of(const Key&, const Shape&, Dtype);
// Part i of a uniform draw of {2, shape...}; the other part is not computed.
Array uniform_slab(const Key&, const Shape&, Dtype, std::int64_t i);

}  // namespace tessera::random
