// MPI's handles behind a Communicator, and the check of every return code: shared by the files of this room.
#pragma once
#include "comm/mpi/mpi_api.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/call.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/watch/meeting.hpp"

namespace tessera::comm {

struct HostGroups;
class NoticeBoard;

// Agreements that wait for the next one (agreement.hpp): the same on all ranks that agree.
struct PutOff {
  struct Known {
    std::uint64_t fingerprint = 0;
    std::string what;
  };
  std::array<Known, 64> known = {};  // what may be put off, at its fingerprint modulo their number
  std::uint64_t fingerprint = 0;     // of the calls since the last agreement
  int calls = 0;
  const Known* last = nullptr;
  struct Data {
    std::uint64_t content = 0;
    UserCall entered = {};
  };
  std::array<Data, 4> data = {};  // the last that these calls read
  std::size_t data_read = 0;
};

struct Communicator::Impl {
  MPI_Comm handle = MPI_COMM_NULL;  // MPI_COMM_NULL: this process alone, nothing to send
  int rank = 0;
  std::vector<int> device_ids;  // by rank
  std::vector<int> rank_of;     // by device id, -1 elsewhere
  std::string name;
  int second_rounds = 0;  // started so far: the same on all ranks
  MeetingCount meetings = {};
  PutOff put_off = {};
  std::shared_ptr<const HostGroups> hosts = nullptr;  // when it was last asked for (host/hosts.hpp)
  int hosts_version = -1;
  std::shared_ptr<NoticeBoard> board = nullptr;  // host/notice_board.hpp
  bool asked_for_board = false;
};

// CommError when code is not MPI_SUCCESS: the MPI call, the rank, the group, what it was for, and MPI's own
// words.
void check(int code, const char* call, const Communicator& comm);
void check(int code, const char* call, const std::string& where);

// Messages of different purposes never match each other.
// The second round of what started earlier is posted when the first is complete, in no order that ranks
// share: each has a tag of its own.
enum Tag : int {
  tag_exchange = 1,
  tag_collective = 2,
  tag_group = 3,
  tag_user = 64,
  tag_second_round = 16384
};
constexpr int second_round_tags = 16383;

// Non-blocking sends and receives that are waited for together. Longer messages than TESSERA_MESSAGE_LIMIT
// travel in pieces, which both sides cut alike.
class Requests {
 public:
  explicit Requests(const Communicator& comm) : comm_(&comm) {}
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  // Cancels what is still under way. Its memory is never used again: this rank has failed.
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
