// Deferred calls that agreements have yet to cover (agreement.hpp). For src/comm/watch alone.
//
// Each group defers calls on a channel of its own, but values leave a group by an agreement of other ranks,
// and a program ends by one of all. So every agreement also compares the deferred calls of other channels:
//
//   channel         agreement of    compared by
//   devices 0-2     devices 0, 1    both: all of them are members, so that it enters their fingerprint
//   devices 0, 1    devices 0-2     a sum of all, in which the terms of ranks 0 and 1 cancel if they agree;
//                                   nothing is put off on it any more
//   devices 0-2     devices 1-3     the same by ranks 1 and 2
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "comm/mpi/communicator.hpp"

namespace tessera::comm {

// The channel of a group. Every group of all devices agrees on one channel, so that a rank whose program has
// ended synchronizes with the others there (leave()).
const Communicator& channel_of(const Communicator&);

// Created at the start of an agreement on a channel, which settles the channel's own deferred calls.
class DeferredCalls {
 public:
  explicit DeferredCalls(const Communicator& channel);
  std::uint64_t by_all() const { return by_all_; }                   // equal on all members; 0: nothing
  std::uint64_t by_parts() const { return parts_.empty() ? 0 : 1; }  // true: a sum is needed
  // This rank's share of the sum, which is 0 if all ranks have deferred the same calls.
  std::uint64_t settle_parts();
  std::string text() const;

 private:
  struct Entry {  // a channel in text()
    const Communicator* channel;
    int calls;
    const std::string* last;
    std::size_t data_read;
  };

  const Communicator& channel_;
  std::uint64_t by_all_ = 0;
  Entry own_{};
  std::vector<const Communicator*> parts_;
  std::vector<Entry> others_;
};

}  // namespace tessera::comm
