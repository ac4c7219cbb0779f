// Scatters whose list is split over ranks, without every rank seeing the whole list.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/index/update/addressed.hpp"

namespace tessera {

// The way that moves less than `rule_bytes`; nothing: none does.
//
//   delivery  x is split along one addressed dim: entries travel to whose block they fall into
//             list [0 1 | 2 3]  ──►  x [a | b]       over one axis; a list that lies elsewhere moves first
//   terms     x is whole along the axes that split the list: each rank applies its part of the list to a
//             copy of its block, and the copies become one
//             list [0 1 | 2 3]       x [a] [a']  ──►  min, max, product; of `set` the entry that stands last
std::optional<Placement> place_split_list(const PlaceArgs&, const GatherParams&, std::int64_t rule_bytes);
// The traffic of that; none where the list is replicated.
std::vector<TalkCost> cost_of_split_list(const PlaceArgs&, const Placement&);
void scatter_split_list(const TalkArgs&);

}  // namespace tessera
