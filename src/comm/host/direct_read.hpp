// Reading another process's memory on the same host without its help: one copy, from where the data lie to
// where they are wanted.
//
//   everybody   --where my operands lie-->   those who read here
//   readers     copy what they want (process_vm_readv)
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

// Whether two ranks (device ids) read each other's memory: on one host, where the system allows it, unless
// TESSERA_COLLECTIVES=mpi. Known everywhere, also about others.
bool reads_directly(int device, int other);
std::int64_t bytes_read_directly();  // by this rank, so far

// Copies out of one peer's memory, many per system call. SystemError when the system refuses.
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

// Reading in the caller's own order and time, between telling and the last word.
//
//   Reading reading(comm, my_operands, readers, sources);
//   reading.operands_of(s)        waits until sources[s] has told; from then on it may be read
//   reading.finish()              tells the sources, and returns when nobody reads here any more
//
// Collective over those who read or are read. `operands` are as many on each rank.
class Reading {
 public:
  Reading(const Communicator&, std::span<const std::uint64_t> operands, std::span<const int> readers,
          std::span<const int> sources);
  ~Reading();
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  std::span<const std::uint64_t> operands_of(std::size_t source);
  std::size_t next();                  // of the sources that have told, one not yet returned; waits for it
  void done_with(std::size_t source);  // not read any more
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct DirectWork {
  std::function<void(std::size_t source, std::span<const std::uint64_t> operands, DirectReader&)> read;
  std::function<void()> meanwhile;  // done once, while others get ready
};

// Everybody tells `readers` where its operands lie and reads from `sources` (device ids, as many operands
// each). Returns when nobody reads here any more. Collective over those who read or are read.
void exchange_by_reading(const Communicator&, std::span<const std::uint64_t> operands,
                         std::span<const int> readers, std::span<const int> sources, const DirectWork&,
                         const char* label);

}  // namespace tessera::comm
