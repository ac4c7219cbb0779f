// Checks that all ranks are about to do the same. MPI detects neither ranks that disagree nor a rank that
// left: both hang or give wrong data.
#pragma once
#include <tessera/error.hpp>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "base/call.hpp"
#include "comm/mpi/communicator.hpp"

namespace tessera::comm {

using tessera::DisagreementError;

// Requests that any rank may attach to an agreement: all ranks carry them out next.
struct Asks {
  bool for_plan = false;          // the rank has no plan yet
  bool for_failed_value = false;  // this rank found an operand without a value
  // The rank has too many communicators (mpi/idle_groups.hpp); only set at the start of an evaluation.
  bool for_fewer_groups = false;
  // A hash of data that may differ between the ranks. In the answer: whether it differs; if so, the ranks
  // unite the data.
  std::uint64_t apart = 0;
  // This rank can compare what is known before fingerprints that differ are an error. In the answer: they
  // differ, all ranks can, and they have deferred the same calls.
  bool for_comparison = false;
};
// Returns when all ranks of the communicator have brought the same fingerprint; the answer combines the
// requests of all ranks and is the same on all. Otherwise every rank throws DisagreementError, whose text
// lists the distinct descriptions with their ranks; describe() is called only then. Stop signals are passed
// on too. One 72-byte all-reduce.
Asks agree(const Communicator& comm, std::uint64_t fingerprint, const std::function<std::string()>& describe,
           Asks mine = {});

// Defers agreements on calls that send nothing, since ranks need not wait for each other there. put_off()
// returns whether the agreement on this call is deferred: the next agree() of these devices, or of others
// that share some of them, then covers it. Every 128th such call agrees at once. Only calls are deferred that
// may_put_off() has named since the ranks agreed on them, and none under TESSERA_CHECK=2. The decision
// depends on the ranks' calls alone: it is the same on all ranks, or the difference is found at the next
// agree(). The call's `data` are compared as well, but may differ from call to call; `entered` is the user
// call that brought them.
bool put_off(const Communicator& comm, std::uint64_t fingerprint, std::uint64_t data = 0,
             const UserCall& entered = {});
// The numbers that the ranks united for that call (Asks::apart). A rank that defers the call uses them.
struct Apart {
  std::uint64_t hash = 0;
  std::vector<std::uint32_t> numbers = {};
};
void may_put_off(const Communicator& comm, std::uint64_t fingerprint, std::string what, Apart united = {});
Apart united_for(const Communicator& comm, std::uint64_t fingerprint);

// "data from array at main.cpp:12, checksum 0123456789abcdef"
std::string content_text(std::uint64_t content, const UserCall& entered);

// Checks that all ranks make this call: the start of collective calls that evaluate nothing. A rank that
// makes another call is found here at once, and not by the watchdog. Does nothing if TESSERA_CHECK is 0.
void agree_on_call(const Communicator& comm, const std::string& call);

// Whether `ok` is true on every rank.
bool all_ok(const Communicator& comm, bool ok);

// "" if `mine` is "" on every rank; else, on every rank, the text of the lowest rank that has one, as "rank
// 2: text".
std::string first_error(const Communicator& comm, const std::string& mine);

// The same for a check that all ranks make alike: omits the rank's name if every rank refuses.
std::string common_error(const Communicator& comm, const std::string& mine);

// With TESSERA_CHECK=2 the ranks of comm agree on a collective before they start it. `what` and `numbers`
// must be equal on all of them.
void check_collective(const Communicator& comm, const char* what,
                      std::initializer_list<std::int64_t> numbers);

// Every rank's text, by rank, on every rank. For reports: not for data.
std::vector<std::string> gather_texts(const Communicator& comm, const std::string& mine);

// "ranks 0, 2: text a\n  rank 1: text b": equal texts once, in the order of the lowest rank that has
// them; at most `most` texts.
std::string list_by_text(const std::vector<std::string>& text_of_rank, const std::vector<int>& device_ids,
                         std::size_t most = std::numeric_limits<std::size_t>::max());

}  // namespace tessera::comm
