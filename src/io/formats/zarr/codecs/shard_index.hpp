// The table of a shard that says where each of its inner chunks is. Pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "io/formats/zarr/codecs/chain.hpp"

namespace tessera::io::zarr {

struct InnerPlace {
  std::uint64_t offset = ~std::uint64_t{0}, bytes = ~std::uint64_t{0};  // both so: there is none
  bool is_there() const { return offset != ~std::uint64_t{0} || bytes != ~std::uint64_t{0}; }
};

// How many inner chunks a shard has along each dim.
Shape inner_counts(const Codec& sharding, const Shape& shard);
std::int64_t index_bytes(const Codec& sharding, const Shape& shard);
// Every place is within the shard's `shard_bytes`.
std::vector<InnerPlace> read_index(const Codec& sharding, const Shape& shard,
                                   std::span<const std::byte> stored, std::int64_t shard_bytes);
Piece index_piece(const Codec& sharding, const std::vector<InnerPlace>&);

}  // namespace tessera::io::zarr
