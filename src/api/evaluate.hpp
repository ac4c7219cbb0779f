// Evaluation: collect -> look the plan up -> agree -> compile -> bind -> run -> the values' slots.
#pragma once
#include <memory>

#include "compile/graph.hpp"
#include "run/executable.hpp"

namespace tessera {

// Computes what has no value yet and stores it in the nodes. Collective over the devices of the values (all
// devices for an uncommitted one).
void evaluate(const std::vector<Array>&);

// All ranks that hold part of the graph's values agree on what they are about to run; otherwise
// DisagreementError with both texts.
void agree_on(const Graph&, const GraphKey&, const std::vector<int>& participants);
// Devices that take part in computing the graph.
std::vector<int> participants(const Graph&);

// MemoryError, on all ranks alike, when a rank would need more than its share of the host's memory.
void check_memory(std::int64_t bytes, const std::string& what);

}  // namespace tessera
