// Reads another process's memory on the same host without its participation: one copy, from the source to the
// final destination.
//
//   all ranks   --addresses of operands-->   the ranks that read them
//   readers     copy the parts that they need (process_vm_readv)
//   readers     --done-->   the owner, who may change or free its operands from now on
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/mpi/communicator.hpp"

struct iovec;

namespace tessera::comm {

// Whether two ranks (device ids) read each other's memory: they share a host, the system allows it, and
// TESSERA_COLLECTIVES is not mpi. Every rank knows the answer for every pair.
bool reads_directly(int device, int other);
std::int64_t bytes_read_directly();  // by this rank, so far

// Copies out of one peer's memory, many pieces per system call. SystemError if the system refuses.
class DirectReader {
 public:
  explicit DirectReader(int device);
  ~DirectReader();
  DirectReader(const DirectReader&) = delete;
  DirectReader& operator=(const DirectReader&) = delete;
  void add(std::uint64_t there, std::byte* here, std::size_t bytes);
  void flush();

 private:
  int device_;
  std::vector<iovec> theirs_, mine_;
};

// Direct reads in an order and at times that the caller chooses.
//
//   Reading reading(comm, my_operands, readers, sources);
//   reading.operands_of(s)        waits for the addresses of sources[s]; its memory may be read from then on
//   reading.finish()              tells the sources, and returns when all reads here have ended
//
// Collective over the ranks that read or are read. Every rank passes the same number of `operands`.
class Reading {
 public:
  Reading(const Communicator&, std::span<const std::uint64_t> operands, std::span<const int> readers,
          std::span<const int> sources);
  ~Reading();
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  std::span<const std::uint64_t> operands_of(std::size_t source);
  std::size_t next();                  // a source whose addresses have arrived, each returned once; waits
  void done_with(std::size_t source);  // ends the reads from this source
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct DirectWork {
  std::function<void(std::size_t source, std::span<const std::uint64_t> operands, DirectReader&)> read;
  std::function<void()> meanwhile;  // called once, before this rank waits for the others
};

// Every rank sends the addresses of its operands to `readers` and reads from `sources` (device ids, each with
// the same number of operands). Returns when nobody reads this rank's memory any more. Collective over the
// ranks that read or are read.
void exchange_by_reading(const Communicator&, std::span<const std::uint64_t> operands,
                         std::span<const int> readers, std::span<const int> sources, const DirectWork&,
                         const char* label);

}  // namespace tessera::comm
