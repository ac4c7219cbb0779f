// The state of a running collective, behind a Pending.
#pragma once
#include <functional>

#include "comm/collectives/pending.hpp"
#include "comm/mpi/mpi_call.hpp"

namespace tessera::comm {

struct Pending::Impl {
  Impl(const Communicator& comm, const char* what_, std::int64_t bytes_)
      : requests(comm), what(what_), bytes(bytes_) {}
  Requests requests;
  const char* what;
  std::int64_t bytes;

  // For exchanges: the receive that each of the first requests belongs to, and how many pieces of each
  // receive are still to come.
  std::vector<std::size_t> receive_of_request;
  std::vector<int> pieces_missing;
  std::function<void(std::size_t)> arrived;

  // The next round of the algorithm, called when all requests are complete. It may post more requests and set
  // the round after it.
  std::function<void()> next_round;

  bool move_on(bool block);  // true when everything is complete

 private:
  bool complete_some(bool block);
};

}  // namespace tessera::comm
