// Exchanges of data that are not contiguous. Messages travel in pieces that are packed just before they are
// sent and unpacked on arrival, so that buffers for a few pieces suffice whatever the size, and a packed
// piece is still in the cache when it is sent.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "comm/mpi/communicator.hpp"

namespace tessera::comm {

inline constexpr std::int64_t best_piece_bytes = std::int64_t{1} << 20;
// The bytes of a piece between two devices: one message, at most best_piece_bytes.
std::int64_t piece_limit(int device, int other);

struct PiecewiseMessage {
  int peer = 0;                      // device id
  std::vector<std::int64_t> pieces;  // bytes of each; both sides cut alike
};

// Callbacks on the pieces. A contiguous piece is sent from, or received into, its place without packing.
struct PieceWork {
  std::function<const std::byte*(std::size_t message, std::size_t piece)> source;  // nullptr: to be packed
  std::function<std::byte*(std::size_t message, std::size_t piece)> destination;   // nullptr: to be unpacked
  std::function<void(std::size_t message, std::size_t piece, std::byte* to)> pack;
  std::function<void(std::size_t message, std::size_t piece, const std::byte* from)> unpack;
  std::function<bool()> meanwhile;  // some work while nothing arrives; false when none is left
};

// Collective over the ranks that send or receive. Messages between a pair match in order. A rank does not
// send to itself.
void exchange_piecewise(const Communicator&, std::span<const PiecewiseMessage> sends,
                        std::span<const PiecewiseMessage> receives, const PieceWork& work, const char* label);

}  // namespace tessera::comm
