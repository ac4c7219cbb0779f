// CRC-32C (Castagnoli, RFC 3720), the checksum of Zarr's codec of that name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera::io::zarr {

std::uint32_t crc32c(std::span<const std::byte>);

}  // namespace tessera::io::zarr
