// Do all ranks say the same? MPI notices neither ranks that disagree nor one that left: both hang or give
// wrong data.
#pragma once
#include <tessera/error.hpp>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>

#include "base/call.hpp"
#include "comm/mpi/communicator.hpp"

namespace tessera::comm {

using tessera::DisagreementError;

// What any rank may ask the others for in an agreement: all of them do it next.
struct Asks {
  bool for_plan = false;          // it has none yet
  bool for_failed_value = false;  // it knows that an operand has no value
};
// Returns when every rank of the communicator brings the same fingerprint: what any of them asks for, the
// same on all. Otherwise every rank throws DisagreementError, whose text shows the distinct descriptions and
// who has which; describe() is called only then. Signals go along. One 48-byte all-reduce.
Asks agree(const Communicator& comm, std::uint64_t fingerprint, const std::function<std::string()>& describe,
           Asks mine = {});

// Where nothing is sent, ranks need not wait for each other to agree. put_off(): whether the agreement on
// this call is left to the next agree() of these devices, or of others that share it, which covers it, but
// for every 128th such call. Only what may_put_off() has named since the ranks agreed on it; never under
// TESSERA_CHECK=2. What ranks decide here follows from their calls alone: it is the same on all of them, or
// found at the next agree(). `data` of the call is compared as well, but may be other data at each call; it
// came by `entered`.
bool put_off(const Communicator& comm, std::uint64_t fingerprint, std::uint64_t data = 0,
             const UserCall& entered = {});
void may_put_off(const Communicator& comm, std::uint64_t fingerprint, std::string what);

// "data from array at main.cpp:12, checksum 0123456789abcdef"
std::string content_text(std::uint64_t content, const UserCall& entered);

// All ranks make this call: the start of what is collective without evaluating anything. A rank that went
// elsewhere is found here at once, and not by the watchdog. Nothing where TESSERA_CHECK is 0.
void agree_on_call(const Communicator& comm, const std::string& call);

// Whether every rank says true.
bool all_ok(const Communicator& comm, bool ok);

// "" if every rank brings ""; else, on every rank, the text of the lowest rank that brings one, as "rank 2:
// text".
std::string first_error(const Communicator& comm, const std::string& mine);

// The same where all ranks are asked for one verdict: without a rank's name where every rank refuses.
std::string common_error(const Communicator& comm, const std::string& mine);

// TESSERA_CHECK=2: the ranks of comm agree on a collective before they start it. `what` and `numbers` must be
// equal on all of them.
void check_collective(const Communicator& comm, const char* what,
                      std::initializer_list<std::int64_t> numbers);

// Every rank's text, by rank, on every rank. For reports: not for data.
std::vector<std::string> gather_texts(const Communicator& comm, const std::string& mine);

// "ranks 0, 2: text a\n  rank 1: text b": equal texts once, in the order of the lowest rank that has them.
std::string list_by_text(const std::vector<std::string>& text_of_rank, const std::vector<int>& device_ids);

}  // namespace tessera::comm
