// Random values of the elements of a box, for one key or for a row of keys: bits, uniform, normal, integers.
//
// Every value depends only on the key, the shape and the element's global position. Bits are made in batches
// that stay in the cache and converted there, so a draw writes its result once and needs no further memory.
#pragma once
#include <tessera/dtype.hpp>
#include <tessera/ops/choices.hpp>
#include <tessera/shape.hpp>

#include <cstdint>
#include <span>
#include <type_traits>

#include "kernels/random/counter_runs.hpp"
#include "kernels/random/threefry.hpp"
#include "types/box.hpp"

namespace tessera::kernels {

// How positions become counters. `original` hashes the first and second half of the whole array's counters as
// pairs.
using random::Threefry;

// Key i of the n keys of split(), and the key of fold_in().
Words split_key(Words key, std::uint64_t i, std::uint64_t n, Threefry);
Words fold_key(Words key, std::uint32_t data);

// The elements of `box` of a global array under each key in turn: a tile of shape (keys, box).
struct DrawBlock {
  std::span<const Words> keys;
  const Box& box;
  const Shape& global;
  Threefry mode = Threefry::partitionable;
};

// The unsigned integer type from which a float T is made.
template <class T> using BitsOf = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

// The random bits of a draw, in the order of its elements.
template <class U> class BitStream {
 public:
  explicit BitStream(const DrawBlock& draw);
  // The next batch of bits (at most `batch`); 0 at the end.
  std::int64_t next(U* out);

 private:
  std::int64_t next_partitionable(U* out);
  std::int64_t next_original(U* out);
  DrawBlock draw_;
  BoxRuns runs_;
  std::size_t key_ = 0;
  bool done_;
};

// Unsigned integers of 8, 16, 32 or 64 bits.
void draw_bits(const DrawBlock&, Dtype, void* out);
// draw_uniform: float32 or float64 in [minval, maxval). draw_normal: sqrt(2) * erf_inv of it, the standard
// normal for the interval (-1, 1).
void draw_uniform(const DrawBlock&, Dtype, double minval, double maxval, void* out);
void draw_normal(const DrawBlock&, Dtype, double minval, double maxval, void* out);
// The least number above -1: with it, (-1, 1) is the half-open interval [after_minus_one, 1).
double after_minus_one(Dtype);

// Integers minval + k, k < span, from two words of bits each. span 0: the full range of the sampled dtype.
// Dtypes narrower than 32 bits are sampled in 32.
void draw_integers(const DrawBlock&, Dtype, std::int64_t minval, std::uint64_t span, void* out);

}  // namespace tessera::kernels
