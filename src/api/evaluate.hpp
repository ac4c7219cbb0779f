// Evaluation: collect -> look up the plan -> agree -> compile -> bind -> run -> store the values.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "compile/graph.hpp"
#include "run/executable.hpp"

namespace tessera {

// Computes values that are not computed yet and stores them in the nodes. Collective over the devices of the
// values (all devices for an uncommitted one). `named`: all values of the user's call, in an order that does
// not depend on which of them have been computed (default: the same values).
void evaluate(const std::vector<Array>&, const std::vector<Array>& named = {});
void forget_plans();  // the next evaluation plans anew; to be called on all ranks
// ArgumentError for an array that left the function in which it was traced, with its origin.
namespace detail {
void check_not_leaked(const Array&);
}

// All ranks that hold part of the graph's values agree on what they are about to run; otherwise
// DisagreementError with both texts. The agreement on a small program that sends nothing is deferred to the
// next one (comm/watch/agreement.hpp) once it has run before.
enum class Agreed {
  all_ready,  // every rank has its plan
  not_ready,  // some rank has none, or no memory for it: all ranks call make_ready()
  later,      // each rank continues by itself
  failed,     // some rank found an operand without a value: all ranks call share_failures()
  unlike      // the ranks differ, perhaps in what they have computed: all ranks call learn_values()
};
struct Asked {
  const Graph& graph;
  const GraphKey& key;
  std::uint64_t plan_key;  // differs if equal graphs have different plans
  const std::vector<int>& participants;
  const Executable* plan;              // nullptr: this rank has none
  const std::vector<Array>& operands;  // the inputs of the computation
  std::uint64_t content;               // content_of(operands)
};
Agreed agree_on(const Asked&, bool may_learn);
// Whether this rank agrees with other ranks before it runs on these devices.
bool waits_for_others(const std::vector<int>& ids);
// Called after the first agreement on a plan: later agreements may be deferred if that is safe.
void allow_later(const Asked&);
// Devices that take part in computing the graph.
std::vector<int> participants(const Graph&);

// Makes a program ready on this rank; if it has one already, `make` is empty and the plan is `known`.
// Collective over the participants: MemoryError on all of them if any would need more than its share of its
// host's memory, or has no memory for the plan itself.
std::unique_ptr<Executable> make_ready(const std::function<Program()>& make, const Executable* known,
                                       const std::vector<int>& participants,
                                       const std::function<std::string()>& what);

// To be called in a catch block: a failure between the participants' agreement and their collective work
// leaves the other ranks waiting, so it is recorded as this rank's failure.
void mark_failed_after_agreement(const std::vector<int>& participants) noexcept;
template <class Work> auto after_agreement(const std::vector<int>& participants, Work work) {
  try {
    return work();
  } catch (...) {
    mark_failed_after_agreement(participants);
    throw;
  }
}

}  // namespace tessera
