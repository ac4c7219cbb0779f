// Evaluation: collect -> look the plan up -> agree -> compile -> bind -> run -> the values' slots.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "compile/graph.hpp"
#include "run/executable.hpp"

namespace tessera {

// Computes what has no value yet and stores it in the nodes. Collective over the devices of the values (all
// devices for an uncommitted one).
void evaluate(const std::vector<Array>&);
// An array that left the function in which it was traced: ArgumentError that says where. Nothing for others.
namespace detail {
void check_not_leaked(const Array&);
}

// All ranks that hold part of the graph's values agree on what they are about to run; otherwise
// DisagreementError with both texts. What is small and sends nothing is agreed on with what comes later
// (comm/watch/agreement.hpp), once it has run before.
enum class Agreed {
  all_ready,  // every rank has its plan
  not_ready,  // some rank has none, or no memory for what it needs: all come to make_ready()
  later,      // each rank goes on by itself
  failed      // some rank knows that an operand has no value: all come to share_failures()
};
struct Asked {
  const Graph& graph;
  const GraphKey& key;
  std::uint64_t plan_key;  // differs where equal graphs have different plans
  const std::vector<int>& participants;
  const Executable* plan;              // nullptr: this rank has none
  const std::vector<Array>& operands;  // what is computed from
  std::uint64_t content;               // content_of(operands)
};
Agreed agree_on(const Asked&);
// Whether this rank agrees with others on what runs on these devices.
bool meets_others(const std::vector<int>& ids);
// After the first agreement on a plan: those that follow may come later, where that is no risk.
void allow_later(const Asked&);
// Devices that take part in computing the graph.
std::vector<int> participants(const Graph&);

// Makes a program ready on this rank, unless it has one: `make` is empty then, and the plan is `known`.
// Collective over the participants: MemoryError on all of them where one would need more than its share of
// its host's memory, or has none for the plan itself.
std::unique_ptr<Executable> make_ready(const std::function<Program()>& make, const Executable* known,
                                       const std::vector<int>& participants,
                                       const std::function<std::string()>& what);

// In a catch block: what this rank fails in, between what the participants agreed on and what they then do
// together, leaves the others inside of that.
void mark_failed_on_the_way(const std::vector<int>& participants) noexcept;
template <class Work> auto on_the_way(const std::vector<int>& participants, Work work) {
  try {
    return work();
  } catch (...) {
    mark_failed_on_the_way(participants);
    throw;
  }
}

}  // namespace tessera
