// Remap: the source of every element of a result, if it is an affine function of the index in each dim.
// Slices, flips, rolls, padding, concatenation, halos and reshards are remaps; one planner turns any of them
// into messages.
#pragma once
#include <tessera/sharding.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include "mesh/axes.hpp"

namespace tessera {

// result[i...] = source[offset[d] + step[d] * i[d], ...] for i in `to`. Negative steps flip; a step of 0
// broadcasts.
struct RemapPiece {
  int source = 0;
  Index to;
  std::vector<std::int64_t> offset, step;
  friend bool operator==(const RemapPiece&, const RemapPiece&) = default;
};
struct Remap {
  std::vector<RemapPiece> pieces;  // disjoint; the caller fills the elements that they do not cover
};
Remap identity_remap(const Shape&);

// One message, in destination coordinates: all elements of `to` come from one rank.
struct Transfer {
  int peer = 0;  // device id
  int piece = 0;
  Index to;
};
struct ExchangePlan {
  std::vector<Transfer> sends,
      receives;  // by peer, then piece; both sides list the blocks of one pair in the same order
  std::vector<Transfer> local;  // copied within this rank
};

// The sends and receives of device `me`. A block with several replicas is taken from the device itself, else
// from the holder with the same fixed coordinates, spread over the holders. The cost is proportional to the
// number of intersecting blocks, not to the number of ranks.
ExchangePlan plan_exchange(const Remap&, std::span<const Sharding> from, std::span<const Shape> from_shapes,
                           const Sharding& to, const Shape& shape, int me, const MeshAxes& fixed_axes = {});

// Bytes received from others by the busiest device.
std::int64_t exchange_bytes(const Remap&, std::span<const Sharding> from, std::span<const Shape> from_shapes,
                            const Sharding& to, const Shape& shape, std::size_t itemsize,
                            const MeshAxes& fixed_axes = {});

}  // namespace tessera
