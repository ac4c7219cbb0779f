// Memory that the other ranks of a host can read and write in place: no message is packed, sent and unpacked.
//
//   rank 0   block = allocate_on_host(n)  --host_address(block.data())-->  rank 1   map(address).data()[...]
//     = ...
//
// A block is a part of the rank's file without a name (memfd), which a peer maps when it first hears of it;
// the file vanishes with the processes. A child after fork() has copies of the blocks, which nobody shares.
// Where the system refuses (other users, containers apart), or between hosts, host_address()
// says so and one sends messages.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "types/buffer.hpp"

namespace tessera::comm {

// Uninitialised. From the pool of Buffer::allocate where no peer could see it: small blocks, and ranks alone
// on their host.
Buffer allocate_on_host(std::size_t bytes);

// The address of a place in such a block as peers find it; plain bytes, to be sent.
struct HostAddress {
  std::int64_t process = 0, file = -1, file_serial = 0;  // file -1: nobody else can see it
  std::int64_t serial = 0, start = 0, block_bytes = 0;   // of the block, in the file
  std::int64_t offset = 0;                               // of the place, in the block
  bool is_visible() const { return file >= 0; }
};
HostAddress host_address(const void* place);

// Whether all of these ranks see each other's blocks. Known everywhere, also about other hosts.
bool share_memory(std::span<const int> ranks);
// The peer's block from that place on, for as long as the handle lives. SystemError if it cannot be mapped.
Buffer map(const HostAddress&);

}  // namespace tessera::comm
