// The recording or replay of this rank behind mpi_calls.hpp: identifies calls, keeps what arrived, and finds
// differences.
#pragma once
#include "comm/mpi/mpi_api.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "comm/tape/tape_file.hpp"

namespace tessera::comm {

// MPI's handles as numbers: pointers or integers, as the MPI has them.
template <class Handle> std::uint64_t number_of(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<std::uintptr_t>(handle);
  else
    return static_cast<std::uint64_t>(handle);
}
// A handle that no MPI has given out, for a replay.
template <class Handle> Handle handle_of(std::uint64_t number) {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(number));
  else
    return static_cast<Handle>(number);
}

class RankTape {
 public:
  // A call of this rank. The data that it sends are read when the call is made, the data that it receives
  // when it ends.
  struct Call {
    TapeEntry entry;
    std::string purpose;
    void* result = nullptr;
    bool is_strict = false;  // the replayed program must send equal bytes
  };

  RankTape(std::unique_ptr<TapeWriter> writer, std::unique_ptr<TapeReader> reader);

  bool replays() const { return reader_ != nullptr; }
  bool is_on() const { return reader_ != nullptr || writer_ != nullptr; }

  // ---- communicators ----
  void add_world(MPI_Comm world, int rank, int size);
  Call call_of_child(MPI_Comm parent, const std::vector<int>& ranks, int tag);
  void add_child(const Call& call, MPI_Comm made, int rank, int size);  // records
  MPI_Comm replay_child(const Call& call);
  void forget(MPI_Comm comm) { channels_.erase(number_of(comm)); }
  int rank_in(MPI_Comm comm) { return channel(comm).rank; }
  int size_of(MPI_Comm comm) { return channel(comm).size; }

  // ---- calls ----
  Call message(TapeKind kind, MPI_Comm comm, int peer, int tag, std::int64_t bytes);
  Call collective(TapeKind kind, MPI_Comm comm, int root, std::int64_t detail, std::int64_t sent_bytes,
                  std::int64_t result_bytes);
  void sends(Call& call, const void* data);  // notes the bits of what is sent
  void keep(const Call& call);               // records what arrived
  // Fills the result of a replayed call, or ends the replay where the recording has no such call.
  void answer(const Call& call);
  bool can_answer(const Call& call) const { return reader_->has(call.entry.id); }
  std::string text(const char* name, std::string value);  // a fact about the job, recorded or replayed

  // ---- requests ----
  void open(MPI_Request request, Call call) { open_[number_of(request)] = std::move(call); }
  MPI_Request replayed_request(Call call);
  // The call of a request; nullptr: it is not known.
  const Call* call_of(MPI_Request request) const;
  void close(MPI_Request request) { open_.erase(number_of(request)); }
  void close_number(std::uint64_t number);  // Notes that a replayed poll found nothing: many in a row mean
                                            // the end of the recording.
  void polled_in_vain(const Call& call);

  [[noreturn]] void end_without(const Call& call);
  void check_all_taken() const;

 private:
  struct Channel {
    std::uint64_t key = 0;
    int rank = 0, size = 1;
    std::int64_t collectives = 0, children = 0;
    std::map<std::pair<int, int>, std::int64_t> sent, received;  // by peer and tag
  };
  Channel& channel(MPI_Comm comm);
  void write(const Call& call, const void* payload);
  std::unordered_set<std::uint64_t> awaited() const;  // ids of open requests
  [[noreturn]] void end_differing(const Call& call, const std::string& recorded) const;

  std::unique_ptr<TapeWriter> writer_;
  std::unique_ptr<TapeReader> reader_;
  std::unordered_map<std::uint64_t, Channel> channels_;  // by handle
  std::unordered_map<std::uint64_t, Call> open_;         // by request
  std::uint64_t next_handle_ = 0x1000;
  double idle_since_s_ = 0;
};

// The tape in use; nullptr: none.
RankTape* tape();

}  // namespace tessera::comm
