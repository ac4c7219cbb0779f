// The metadata of an array that is made. Pure.
#pragma once
#include <tessera/io/zarr.hpp>
#include <tessera/sharding.hpp>

#include <string>

#include "io/formats/zarr/metadata/metadata.hpp"

namespace tessera::io::zarr {

// ArgumentError, beginning with the call, for what the options do not mean.
ArrayMeta new_array(const std::string& call, const Shape&, Dtype, const Sharding&, const ZarrOptions&);
// For the agreement of the ranks.
std::string options_text(const ZarrOptions&);
// The block of a sharding, or a part of it that divides it, of at most 64 MiB.
Shape chosen_chunk(const Shape& block, std::int64_t itemsize);

}  // namespace tessera::io::zarr
