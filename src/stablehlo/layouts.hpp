// Meshes and layouts of the text as tessera's. Device k of the text is rank k.
#pragma once
#include <optional>
#include <string>

#include "stablehlo/evaluate.hpp"

namespace tessera::stablehlo {

// The meshes of the module; ShardingError where one needs more devices than the job has.
Layouts layouts_of(const Module&, bool ignored);
// The layout of `<@mesh, [{"x"}, {}]>`; nullopt where the planner is to choose. ArgumentError for a mesh that
// the module does not have, for partial sums, and for another number of dims.
std::optional<Sharding> sharding_of(const Module&, const Layouts&, const Attribute&, int ndim);
// The same of GSPMD's "{devices=[4,2]<=[8]}".
std::optional<Sharding> gspmd_sharding_of(const Module&, const Layouts&, const Attribute&, int ndim);
// The layout among the attributes of an argument or a result.
std::optional<Sharding> sharding_among(const Module&, const Layouts&, const Attribute& attributes, int ndim);
// The axes named for each dim of a sharding.
std::vector<std::vector<std::string>> axes_of(const Attribute& sharding);
const Mesh& mesh_of(const Module&, const Layouts&, const Attribute& sharding);

}  // namespace tessera::stablehlo
