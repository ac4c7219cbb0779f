// Remap: where every element of a result comes from, when that is an affine function of its index in each
// dimension. Slices, flips, rolls, padding, concatenation, halos and reshards are remaps; one planner turns
// any of them into messages.
#pragma once
#include <tessera/sharding.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include "mesh/axes.hpp"

namespace tessera {

// result[i...] = source[offset[d] + step[d] * i[d], ...] for i in `to`. Negative steps flip. A step of 0
// broadcasts.
struct Piece {
  int source = 0;
  Index to;
  std::vector<std::int64_t> offset, step;
  friend bool operator==(const Piece&, const Piece&) = default;
};
struct Remap {
  std::vector<Piece> pieces;  // disjoint; what they leave uncovered is filled by the caller
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
  std::vector<Transfer> local;  // this rank keeps them
};

// The sends and receives of device `me`. Replicas are served by the device itself, else by the holder of the
// same fixed coordinates, spread over the holders. Cost is proportional to the blocks that meet, not to the
// number of ranks.
ExchangePlan plan_exchange(const Remap&, std::span<const Sharding> from, std::span<const Shape> from_shapes,
                           const Sharding& to, const Shape& shape, int me, const MeshAxes& fixed_axes = {});

// Bytes received from others by the busiest device.
std::int64_t exchange_bytes(const Remap&, std::span<const Sharding> from, std::span<const Shape> from_shapes,
                            const Sharding& to, const Shape& shape, std::size_t itemsize,
                            const MeshAxes& fixed_axes = {});

}  // namespace tessera
