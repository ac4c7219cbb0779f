// The stages in order: partition -> share -> loops -> fuse -> schedule. No other file calls them.
#pragma once
#include <optional>
#include <vector>

#include "compile/partition.hpp"

namespace tessera {

// Graph -> Program through all passes; every stage is verified and, with TESSERA_DUMP, written to a file.
Program compile(const Graph&, const Layouts& layouts = {},
                const std::vector<std::optional<Sharding>>& root_layouts = {});

}  // namespace tessera
