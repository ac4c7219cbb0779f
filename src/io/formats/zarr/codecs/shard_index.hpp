// The index of a shard: offset and size of each inner chunk. Pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "io/formats/zarr/codecs/chain.hpp"

namespace tessera::io::zarr {

struct InnerPlace {
  std::uint64_t offset = ~std::uint64_t{0}, bytes = ~std::uint64_t{0};  // both all ones: the chunk is absent
  bool is_there() const { return offset != ~std::uint64_t{0} || bytes != ~std::uint64_t{0}; }
};

// The number of inner chunks of a shard along each dim.
Shape inner_counts(const Codec& sharding, const Shape& shard);
std::int64_t index_bytes(const Codec& sharding, const Shape& shard);
// Checks that every inner chunk is within the shard's `shard_bytes`.
std::vector<InnerPlace> read_index(const Codec& sharding, const Shape& shard,
                                   std::span<const std::byte> stored, std::int64_t shard_bytes);
EncodedBytes index_piece(const Codec& sharding, const std::vector<InnerPlace>&);

}  // namespace tessera::io::zarr
