// The steps of a codec chain that work on bytes, there and back. Pure; errors are IoErrors "fact; mend".
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "io/formats/zarr/codecs/packers.hpp"

namespace tessera::io::zarr {

using Codecs = std::span<const Codec>;

// Those behind the one that makes bytes.
Codecs behind_serializer(Codecs);
const Codec& serializer_of(Codecs);

Piece pack(Codecs byte_steps, std::span<const std::byte> in, std::size_t itemsize);
// Exactly `bytes` come out, into `out` where it is given; where there are no steps, `in` itself.
Piece unpack(Codecs byte_steps, std::span<const std::byte> in, std::int64_t bytes, std::byte* out = nullptr);

// At most `most` bytes come out.
Piece unpack_most(Codecs byte_steps, std::span<const std::byte> in, std::int64_t most);

// Each number's bytes in the other order; a complex number is two of half the width.
void reverse_bytes(std::byte* data, std::int64_t elements, Dtype);

}  // namespace tessera::io::zarr
