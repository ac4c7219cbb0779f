// The metadata of a new array. Pure.
#pragma once
#include <tessera/io/zarr.hpp>
#include <tessera/sharding.hpp>

#include <string>

#include "io/formats/zarr/metadata/metadata.hpp"

namespace tessera::io::zarr {

// ArgumentError, beginning with the call, for invalid options.
ArrayMeta new_array(const std::string& call, const Shape&, Dtype, const Sharding&, const ZarrOptions&);
// The options as text, for the agreement of the ranks.
std::string options_text(const ZarrOptions&);
// The block of a sharding, or a part that divides it evenly, of at most 64 MiB.
Shape chosen_chunk(const Shape& block, std::int64_t itemsize);

}  // namespace tessera::io::zarr
