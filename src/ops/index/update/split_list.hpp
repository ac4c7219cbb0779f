// Scatters whose list is split over ranks, without replicating the list.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/index/update/addressed.hpp"

namespace tessera {

// The algorithm that moves less than `rule_bytes`, or nullopt.
//
//   delivery  x is split along one addressed dim: entries are sent to the rank whose block they update
//             list [0 1 | 2 3]  ──►  x [a | b]       over one axis; a list in another layout moves first
//   terms     x is replicated along the axes that split the list: each rank applies its part of the list to a
//             copy of its block, and the copies are combined
//             list [0 1 | 2 3]       x [a] [a']  ──►  min, max, product; for `set` the entry that is last
std::optional<Placement> place_split_list(const PlacementArgs&, const GatherParams&, std::int64_t rule_bytes);
// The traffic of that placement; none if the list is replicated.
std::vector<CommunicationCost> cost_of_split_list(const PlacementArgs&, const Placement&);
void scatter_split_list(const CommunicationArgs&);

}  // namespace tessera
