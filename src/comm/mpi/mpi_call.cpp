#include "comm/mpi/mpi_call.hpp"

#include <tessera/error.hpp>

#include <algorithm>

#include "base/settings.hpp"
#include "comm/host/hosts.hpp"
#include "comm/watch/failure.hpp"
#include "comm/watch/waiting.hpp"

namespace tessera::comm {

void check(int code, const char* call, const std::string& where) {
  if (code == MPI_SUCCESS) return;
  char words[MPI_MAX_ERROR_STRING] = "MPI could not start";
  int length = 0, initialized = 0;
  mpi::Initialized(&initialized);
  if (initialized) mpi::Error_string(code, words, &length);
  const std::string purpose = current_purpose();
  throw CommError(std::string(call) + " failed on " + where + (purpose.empty() ? "" : ", for " + purpose) +
                  ": " + words +
                  ". The job cannot go on; the first rank that reports an error is the one to look at.");
}

void check(int code, const char* call, const Communicator& comm) {
  if (code == MPI_SUCCESS) return;
  check(code, call, "rank " + std::to_string(comm.rank()) + " of " + comm.name());
}

namespace {

// The pieces of one message stay few, since a wait looks at every open request.
constexpr std::int64_t most_pieces = 4096;

template <class Post> int in_pieces(const Communicator& comm, int peer, std::int64_t bytes, Post post) {
  const std::int64_t limit =
      std::min(settings().message_limit, std::max(message_limit(comm, peer), bytes / most_pieces));
  int pieces = 0;
  for (std::int64_t done = 0; done < bytes; done += limit, ++pieces)
    post(done, static_cast<int>(std::min(limit, bytes - done)));
  return pieces;
}

}  // namespace

int Requests::send(const void* data, std::int64_t bytes, int to, int tag) {
  return in_pieces(*comm_, to, bytes, [&](std::int64_t offset, int count) {
    MPI_Request request;
    check(mpi::Isend(static_cast<const std::byte*>(data) + offset, count, MPI_BYTE,
                     comm_->impl().mpi_rank(to), tag, comm_->impl().handle, &request),
          "MPI_Isend", *comm_);
    add(request);
  });
}

int Requests::receive(void* data, std::int64_t bytes, int from, int tag) {
  count_from(*comm_, from, bytes);
  return in_pieces(*comm_, from, bytes, [&](std::int64_t offset, int count) {
    MPI_Request request;
    check(mpi::Irecv(static_cast<std::byte*>(data) + offset, count, MPI_BYTE, comm_->impl().mpi_rank(from),
                     tag, comm_->impl().handle, &request),
          "MPI_Irecv", *comm_);
    add(request);
  });
}

void Requests::wait_all() {
  if (requests_.empty()) return;
  check(mpi::Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
        "MPI_Waitall", *comm_);
  requests_.clear();
}

bool Requests::test_all() {
  if (requests_.empty()) return true;
  int done = 0;
  check(mpi::Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE),
        "MPI_Testall", *comm_);
  if (done) requests_.clear();
  return done != 0;
}

Requests::~Requests() {
  int finalized = 0;
  mpi::Finalized(&finalized);
  if (finalized) return;
  for (auto& request : requests_) {
    if (request == MPI_REQUEST_NULL) continue;
    mark_cut_off();  // a cancelled receive may still write to its buffer
    mpi::Cancel(&request);
    mpi::Request_free(&request);
  }
}

}  // namespace tessera::comm
