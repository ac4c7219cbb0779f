// Evaluation: collect -> look the plan up -> agree -> compile -> bind -> run -> the values' slots.
#pragma once
#include <functional>
#include <memory>

#include "compile/graph.hpp"
#include "run/executable.hpp"

namespace tessera {

// Computes what has no value yet and stores it in the nodes. Collective over the devices of the values (all
// devices for an uncommitted one).
void evaluate(const std::vector<Array>&);

// All ranks that hold part of the graph's values agree on what they are about to run; otherwise
// DisagreementError with both texts. Whether some rank has no plan yet: then all come to make_ready().
bool agree_on(const Graph&, const GraphKey&, const std::vector<int>& participants, bool has_plan);
// Devices that take part in computing the graph.
std::vector<int> participants(const Graph&);

// Makes a program ready on this rank, unless it has one: `make` is empty. Collective over the participants:
// MemoryError on all of them where one would need more than its share of its host's memory, or has none for
// the plan itself.
std::unique_ptr<Executable> make_ready(const std::function<Program()>& make,
                                       const std::vector<int>& participants, const std::string& what);

}  // namespace tessera
