// MPI's handles behind a Communicator, and the check of every return code: shared by the files of comm.
#pragma once
#include "comm/mpi/mpi_api.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/call.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/tape/mpi_calls.hpp"  // IWYU pragma: export
#include "comm/watch/rendezvous.hpp"

namespace tessera::comm {

struct HostGroups;
class SharedSlots;

// Agreements left to the next one (agreement.hpp): the same on all ranks of the communicator.
struct PutOff {
  struct Known {
    std::uint64_t fingerprint = 0;
    std::string what;
    std::uint64_t apart = 0;  // data that the ranks united in that agreement: a hash, and the numbers
    std::vector<std::uint32_t> apart_numbers = {};
  };
  std::array<Known, 64> known = {};  // calls that may be left to it, at their fingerprint modulo 64
  std::uint64_t fingerprint = 0;     // hash of the calls since the last agreement
  int calls = 0;
  const Known* last = nullptr;
  struct Data {
    std::uint64_t content = 0;
    UserCall entered = {};
  };
  std::array<Data, 4> data = {};  // the last data that these calls read
  std::size_t data_read = 0;
};

// State that all orders of one set of devices share.
struct OfSet {
  int second_rounds = 0;  // started so far; the same on all ranks
  RendezvousCount rendezvous_count = {};
  PutOff put_off = {};
  std::shared_ptr<SharedSlots> board = nullptr;           // host/shared_slots.hpp
  bool asked_for_slots = false, failed_to_share = false;  // failed: on this rank, by MPI
};

struct Communicator::Impl {
  MPI_Comm handle = MPI_COMM_NULL;  // MPI_COMM_NULL: this process alone, nothing to send
  int rank = 0;
  std::vector<int> device_ids;  // by rank
  std::vector<int> rank_of;     // by device id, -1 elsewhere
  std::string name;
  std::shared_ptr<OfSet> set = nullptr;
  // The communicator of these devices in ascending order; nullptr: this one.
  std::shared_ptr<const Communicator> ascending = nullptr;
  std::vector<int> mpi_ranks = {};                    // by rank, the handle's; empty: the same
  std::shared_ptr<const HostGroups> hosts = nullptr;  // when it was last asked for (host/hosts.hpp)
  int hosts_version = -1;

  bool is_reordered() const { return !mpi_ranks.empty(); }
  int mpi_rank(int r) const { return mpi_ranks.empty() ? r : mpi_ranks[static_cast<std::size_t>(r)]; }
};

// The communicator of the same devices whose ranks are MPI's.
inline const Communicator& ascending(const Communicator& comm) {
  return comm.impl().is_reordered() ? *comm.impl().ascending : comm;
}

// Throws CommError when code is not MPI_SUCCESS: names the MPI call, the rank, the group, the purpose, and
// MPI's own message.
void check(int code, const char* call, const Communicator& comm);
void check(int code, const char* call, const std::string& where);

// Messages of different purposes never match each other. A collective's second round is posted when its first
// is complete, in an order that differs between ranks: each gets a tag of its own.
enum Tag : int {
  tag_exchange = 1,
  tag_collective = 2,
  tag_group = 3,
  tag_user = 64,
  tag_second_round = 16384
};
constexpr int second_round_tags = 16383;

// Non-blocking sends and receives, completed together. Data beyond the longest message travel in several,
// which both sides cut alike.
class Requests {
 public:
  explicit Requests(const Communicator& comm) : comm_(&comm) {}
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  // Cancels open requests. Their memory is never used again: this rank has failed.
  ~Requests();
  int send(const void* data, std::int64_t bytes, int to, int tag);  // each returns the number of pieces
  int receive(void* data, std::int64_t bytes, int from, int tag);
  void add(MPI_Request request) { requests_.push_back(request); }
  void wait_all();
  bool test_all();
  std::vector<MPI_Request>& list() { return requests_; }
  const Communicator& comm() const { return *comm_; }

 private:
  const Communicator* comm_;
  std::vector<MPI_Request> requests_;
};

}  // namespace tessera::comm
