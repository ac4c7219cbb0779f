// The transport of messages between hosts, as far as the MPI library tells it.
#pragma once
#include <cstdint>

namespace tessera::comm {

// The longest message that Open MPI's own transport (ob1) sends over TCP without a handshake. The longest of
// all where that transport is not in use (UCX, PSM2, OFI) or another MPI is. After MPI's start, not
// collective.
std::int64_t longest_without_handshake();

}  // namespace tessera::comm
