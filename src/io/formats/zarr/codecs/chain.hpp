// The bytes-to-bytes steps of a codec chain, in both directions. Pure; errors are IoErrors "fact; mend".
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "io/formats/zarr/codecs/packers.hpp"

namespace tessera::io::zarr {

using Codecs = std::span<const Codec>;

// The steps after the one that turns an array into bytes.
Codecs behind_serializer(Codecs);
const Codec& serializer_of(Codecs);

EncodedBytes pack(Codecs byte_steps, std::span<const std::byte> in, std::size_t itemsize);
// Returns exactly `bytes` bytes, in `out` if given; without steps, `in` itself.
EncodedBytes unpack(Codecs byte_steps, std::span<const std::byte> in, std::int64_t bytes,
                    std::byte* out = nullptr);

// Returns at most `most` bytes.
EncodedBytes unpack_most(Codecs byte_steps, std::span<const std::byte> in, std::int64_t most);

// Reverses the bytes of each number; a complex number counts as two of half the width.
void reverse_bytes(std::byte* data, std::int64_t elements, Dtype);

}  // namespace tessera::io::zarr
