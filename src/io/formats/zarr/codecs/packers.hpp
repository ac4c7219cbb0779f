// Packing and unpacking of bytes by the compression libraries of the build.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "io/formats/zarr/metadata/metadata.hpp"
#include "types/buffer.hpp"

namespace tessera::io::zarr {

// Bytes in memory that the piece owns, or borrowed bytes.
struct EncodedBytes {
  std::span<const std::byte> bytes;
  Buffer memory = {};
};

// IoError "fact; mend" on failure.
EncodedBytes pack_zstd(const Codec&, std::span<const std::byte>);
EncodedBytes pack_blosc(const Codec&, std::span<const std::byte>, std::size_t itemsize);
// Return the number of unpacked bytes; refuse data that do not fit into `out`.
std::size_t unpack_zstd(std::span<const std::byte>, std::span<std::byte> out);
std::size_t unpack_blosc(std::span<const std::byte>, std::span<std::byte> out);

}  // namespace tessera::io::zarr
