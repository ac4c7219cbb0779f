// Memory that the other ranks of a host can read and write in place: no message is packed, sent and unpacked.
//
//   rank 0   block = allocate_on_host(n)  --host_address(block.data())-->  rank 1   map(address).data()
//
// A block is a part of the rank's unnamed file (memfd), which a peer maps when it first receives an address
// in it; the file disappears with the processes. A child after fork() has private copies of the blocks. If
// the system refuses (other users, separate containers), or between hosts, host_address() reports it and
// callers send messages instead.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "types/buffer.hpp"

namespace tessera::comm {

// Uninitialised. Comes from the pool of Buffer::allocate if no peer could map it: for small blocks, and for
// ranks alone on their host.
Buffer allocate_on_host(std::size_t bytes);

// The address of a byte in such a block, valid in peer processes; plain data, to be sent in messages.
struct HostAddress {
  std::int64_t process = 0, file = -1, file_serial = 0;  // file -1: no other process can map it
  // Serial number, start in the file and size of the block.
  std::int64_t serial = 0, start = 0, block_bytes = 0;
  std::int64_t offset = 0;  // offset of the addressed byte in the block
  bool is_visible() const { return file >= 0; }
};
HostAddress host_address(const void* place);

// For tests: while true, this process gets no further blocks and maps no further ones, as at a limit of the
// system.
void refuse_host_memory(bool);

// Whether all of these ranks can map each other's blocks. Every rank knows the answer, for other hosts too.
bool share_memory(std::span<const int> ranks);
// Maps the peer's block from that address on, for the lifetime of the Buffer. SystemError if it cannot be
// mapped.
Buffer map(const HostAddress&);

}  // namespace tessera::comm
