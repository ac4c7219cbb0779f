#include "comm/host/direct_read.hpp"

#include <tessera/error.hpp>

#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>

#include "base/session.hpp"
#include "base/settings.hpp"
#include "comm/host/host_sharing.hpp"
#include "comm/mpi/mpi_call.hpp"
#include "comm/watch/waiting.hpp"
#include "types/buffer.hpp"

namespace tessera::comm {
namespace {

struct Readable {
  std::vector<int>
      host_of;  // by device id: the first rank of those that read each other's memory; -1: no direct reads
  std::vector<std::int64_t> process_of;  // by device id
  std::int64_t bytes_read = 0;           // by this rank
};
Readable& readable() { return state<Readable>(); }

// Whether every rank of a host can read every other's memory.
bool all_can_read(MPI_Comm host, int host_size) {
  struct Card {
    std::int64_t process, place, password;
  };
  // Process numbers alone are not enough: ranks in separate PID namespaces may have equal ones and read
  // themselves.
  std::int64_t password = 0;
  if (getrandom(&password, sizeof password, 0) != sizeof password) password = 0;
  int rank = 0;
  mpi::Comm_rank(host, &rank);
  password = (password & ~std::int64_t{0xffffff}) | rank;
  const Card mine{getpid(), static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(&password)), password};
  std::vector<Card> cards(host_size);
  check(mpi::Allgather(&mine, sizeof mine, MPI_BYTE, cards.data(), sizeof mine, MPI_BYTE, host),
        "MPI_Allgather", "the ranks of this host");
  int works = tape_use() == TapeUse::none ? 1 : 0;
  for (const auto& card : cards) {
    if (works == 0) break;
    std::int64_t found = 0;
    const iovec here{&found, sizeof found}, there{reinterpret_cast<void*>(card.place), sizeof found};
    if (process_vm_readv(static_cast<pid_t>(card.process), &here, 1, &there, 1, 0) != sizeof found ||
        found != card.password)
      works = 0;
  }
  int all_work = 0;
  // Acts as a barrier: a rank's password stays on its stack until all ranks have read it.
  check(mpi::Allreduce(&works, &all_work, 1, MPI_INT, MPI_MIN, host), "MPI_Allreduce",
        "the ranks of this host");
  return all_work == 1;
}

}  // namespace

void find_readable_ranks(MPI_Comm host, MPI_Comm world) {
  int host_size = 1;
  mpi::Comm_size(host, &host_size);
  readable().host_of = first_ranks_of_hosts(host_size > 1 && all_can_read(host, host_size), host, world);
  const std::int64_t mine = getpid();
  readable().process_of.resize(readable().host_of.size());
  check(mpi::Allgather(&mine, 1, MPI_INT64_T, readable().process_of.data(), 1, MPI_INT64_T, world),
        "MPI_Allgather", "all ranks");
}

bool reads_directly(int device, int other) {
  const auto& hosts = readable().host_of;
  const auto host_of = [&](int id) {
    return id >= 0 && id < static_cast<int>(hosts.size()) ? hosts[id] : -1;
  };
  return host_of(device) >= 0 && host_of(device) == host_of(other) && settings().collectives != "mpi";
}

std::int64_t bytes_read_directly() { return readable().bytes_read; }

DirectReader::DirectReader(int device) : device_(device) {}
DirectReader::~DirectReader() = default;

void DirectReader::add(std::uint64_t there, std::byte* here, std::size_t bytes) {
  constexpr std::size_t most = IOV_MAX;
  if (bytes == 0) return;
  const bool goes_on =
      !theirs_.empty() && static_cast<std::byte*>(mine_.back().iov_base) + mine_.back().iov_len == here &&
      reinterpret_cast<std::uint64_t>(theirs_.back().iov_base) + theirs_.back().iov_len == there;
  if (goes_on) {
    theirs_.back().iov_len += bytes;
    mine_.back().iov_len += bytes;
    return;
  }
  if (theirs_.size() == most) flush();
  theirs_.push_back({reinterpret_cast<void*>(there), bytes});
  mine_.push_back({here, bytes});
}

void DirectReader::flush() {
  // The system call may stop after any number of bytes, at the latest after 2 GiB.
  std::size_t first = 0;
  while (first < theirs_.size()) {
    const auto count = static_cast<unsigned long>(theirs_.size() - first);
    const auto process = static_cast<pid_t>(readable().process_of[device_]);
    auto copied = process_vm_readv(process, &mine_[first], count, &theirs_[first], count, 0);
    if (copied < 0 && errno == EINTR) continue;
    if (copied <= 0)
      throw SystemError("cannot read the memory of rank " + std::to_string(device_) + " (process " +
                        std::to_string(process) + ") on this host: " + std::strerror(errno) +
                        ". TESSERA_COLLECTIVES=mpi sends messages instead");
    readable().bytes_read += copied;
    while (copied > 0) {
      const auto part = std::min(static_cast<std::size_t>(copied), theirs_[first].iov_len);
      copied -= static_cast<ssize_t>(part);
      theirs_[first].iov_base = static_cast<std::byte*>(theirs_[first].iov_base) + part;
      mine_[first].iov_base = static_cast<std::byte*>(mine_[first].iov_base) + part;
      theirs_[first].iov_len -= part;
      mine_[first].iov_len -= part;
      if (theirs_[first].iov_len == 0) ++first;
    }
  }
  theirs_.clear();
  mine_.clear();
}

// Buffers, since the memory of messages in flight must outlive a passing exception.
struct Reading::Impl {
  Impl(const Communicator& comm, std::span<const std::uint64_t> operands, std::span<const int> readers_,
       std::span<const int> sources_)
      : comm(&comm),
        sources(sources_.begin(), sources_.end()),
        done(sources_.size()),
        count(operands.size()),
        addresses_memory(Buffer::allocate(operands.size_bytes() * sources_.size())),
        operands_memory(Buffer::allocate(operands.size_bytes())),
        words(Buffer::allocate(readers_.size() + 1)),
        arrivals(comm),
        dones(comm),
        departures(comm) {
    const auto bytes = static_cast<int>(operands.size_bytes());
    if (bytes > 0) std::memcpy(operands_memory.data(), operands.data(), operands.size_bytes());
    arrivals.list().assign(sources.size(), MPI_REQUEST_NULL);
    dones.list().assign(readers_.size(), MPI_REQUEST_NULL);
    // Pairs may read in both directions: addresses are received before the message "done", since messages of
    // one tag match in order.
    for (std::size_t s = 0; s < sources.size(); ++s)
      check(
          mpi::Irecv(addresses() + s * count, bytes, MPI_BYTE, comm.impl().mpi_rank(comm.rank_of(sources[s])),
                     tag_exchange, comm.impl().handle, &arrivals.list()[s]),
          "MPI_Irecv", comm);
    for (const int reader : readers_)
      departures.send(operands_memory.data(), bytes, comm.rank_of(reader), tag_exchange);
    for (std::size_t r = 0; r < readers_.size(); ++r)
      check(mpi::Irecv(words.data() + r, 1, MPI_BYTE, comm.impl().mpi_rank(comm.rank_of(readers_[r])),
                       tag_exchange, comm.impl().handle, &dones.list()[r]),
            "MPI_Irecv", comm);
  }
  std::uint64_t* addresses() { return reinterpret_cast<std::uint64_t*>(addresses_memory.data()); }

  const Communicator* comm;
  std::vector<int> sources;
  std::vector<bool> done;
  std::size_t count;  // operands
  Buffer addresses_memory, operands_memory, words;
  Requests arrivals, dones, departures;
};

Reading::Reading(const Communicator& comm, std::span<const std::uint64_t> operands,
                 std::span<const int> readers, std::span<const int> sources)
    : impl_(std::make_unique<Impl>(comm, operands, readers, sources)) {}
Reading::~Reading() = default;

std::span<const std::uint64_t> Reading::operands_of(std::size_t source) {
  auto& request = impl_->arrivals.list()[source];
  if (request != MPI_REQUEST_NULL) {
    const Waiting waiting("the addresses of a source", *impl_->comm, 0);
    check(mpi::Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait", *impl_->comm);
  }
  return {impl_->addresses() + source * impl_->count, impl_->count};
}

std::size_t Reading::next() {
  auto& list = impl_->arrivals.list();
  int source = 0;
  check(mpi::Waitany(static_cast<int>(list.size()), list.data(), &source, MPI_STATUS_IGNORE), "MPI_Waitany",
        *impl_->comm);
  return static_cast<std::size_t>(source);
}

void Reading::done_with(std::size_t source) {
  if (impl_->done[source]) return;
  operands_of(source);  // receives the addresses first: the next message of this pair must not match them
  std::byte* const word = impl_->words.data() + impl_->dones.list().size();
  impl_->departures.send(word, 1, impl_->comm->rank_of(impl_->sources[source]), tag_exchange);
  impl_->done[source] = true;
}

void Reading::finish() {
  for (std::size_t s = 0; s < impl_->sources.size(); ++s) done_with(s);
  const Waiting waiting("the last word of readers", *impl_->comm, 0);
  impl_->dones.wait_all();
  impl_->departures.wait_all();
}

void exchange_by_reading(const Communicator& comm, std::span<const std::uint64_t> operands,
                         std::span<const int> readers, std::span<const int> sources, const DirectWork& work,
                         const char* label) {
  const Waiting waiting(label, comm, 0);
  Reading reading(comm, operands, readers, sources);
  if (work.meanwhile) work.meanwhile();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::size_t source = reading.next();
    DirectReader reader(sources[source]);
    work.read(source, reading.operands_of(source), reader);
    reader.flush();
    reading.done_with(source);
  }
  reading.finish();
}

}  // namespace tessera::comm
