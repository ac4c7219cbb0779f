// Packing and unpacking of bytes by the libraries that the build has.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "io/formats/zarr/metadata/metadata.hpp"
#include "types/buffer.hpp"

namespace tessera::io::zarr {

// Bytes that stand in memory of their own, or in somebody else's.
struct Piece {
  std::span<const std::byte> bytes;
  Buffer memory = {};
};

// An IoError "fact; mend" where that cannot be done.
Piece pack_zstd(const Codec&, std::span<const std::byte>);
Piece pack_blosc(const Codec&, std::span<const std::byte>, std::size_t itemsize);
// How many bytes came out; refuses what does not fit into `out`.
std::size_t unpack_zstd(std::span<const std::byte>, std::span<std::byte> out);
std::size_t unpack_blosc(std::span<const std::byte>, std::span<std::byte> out);

}  // namespace tessera::io::zarr
