#include "io/formats/zarr/codecs/shard_index.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

namespace tessera::io::zarr {
namespace {

constexpr std::int64_t entry_bytes = 16;

bool is_swapped(const Codec& sharding) {
  return serializer_of(sharding.index_codecs).is_big_endian == (std::endian::native == std::endian::little);
}

}  // namespace

Shape inner_counts(const Codec& sharding, const Shape& shard) {
  std::vector<std::int64_t> counts;
  for (std::size_t d = 0; d < shard.size(); ++d) counts.push_back(shard[d] / sharding.chunk[d]);
  return Shape(counts);
}

std::int64_t index_bytes(const Codec& sharding, const Shape& shard) {
  const auto sums = static_cast<std::int64_t>(4 * behind_serializer(sharding.index_codecs).size());
  return inner_counts(sharding, shard).elements() * entry_bytes + sums;
}

std::vector<InnerPlace> read_index(const Codec& sharding, const Shape& shard,
                                   std::span<const std::byte> stored, std::int64_t shard_bytes) {
  const std::int64_t count = inner_counts(sharding, shard).elements();
  const EncodedBytes table = unpack(behind_serializer(sharding.index_codecs), stored, count * entry_bytes);
  std::vector<InnerPlace> places(static_cast<std::size_t>(count));
  if (count > 0) std::memcpy(places.data(), table.bytes.data(), table.bytes.size());
  if (is_swapped(sharding)) reverse_bytes(reinterpret_cast<std::byte*>(places.data()), 2 * count, uint64);
  const auto most = static_cast<std::uint64_t>(shard_bytes);
  for (const InnerPlace& place : places)
    if (place.is_there() && (place.offset > most || place.bytes > most - place.offset))
      refuse("places a chunk of " + std::to_string(place.bytes) + " bytes at byte " +
             std::to_string(place.offset) + " of a shard of " + std::to_string(shard_bytes));
  return places;
}

EncodedBytes index_piece(const Codec& sharding, const std::vector<InnerPlace>& places) {
  const std::size_t bytes = places.size() * sizeof(InnerPlace);
  EncodedBytes table{.bytes = {}, .memory = Buffer::allocate(bytes)};
  if (bytes > 0) std::memcpy(table.memory.data(), places.data(), bytes);
  if (is_swapped(sharding))
    reverse_bytes(table.memory.data(), static_cast<std::int64_t>(2 * places.size()), uint64);
  table.bytes = {table.memory.data(), bytes};
  EncodedBytes packed = pack(behind_serializer(sharding.index_codecs), table.bytes, 8);
  if (!packed.memory) packed.memory = table.memory;
  return packed;
}

}  // namespace tessera::io::zarr
