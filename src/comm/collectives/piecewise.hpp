// Exchanges of data that does not lie in one run of memory: it travels in pieces, packed just before they
// leave and unpacked as they arrive, so that a few pieces of room are enough whatever the size, and a packed
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
// As many bytes as TESSERA_MESSAGE_LIMIT allows in one message, at most best_piece_bytes.
std::int64_t piece_limit();

struct PiecewiseMessage {
  int peer = 0;                      // device id
  std::vector<std::int64_t> pieces;  // bytes of each; both sides cut alike
};

// Work on the pieces. A piece that is contiguous is sent from its place, or received there.
struct PieceWork {
  std::function<const std::byte*(std::size_t message, std::size_t piece)> source;  // nullptr: to be packed
  std::function<std::byte*(std::size_t message, std::size_t piece)> destination;   // nullptr: to be unpacked
  std::function<void(std::size_t message, std::size_t piece, std::byte* to)> pack;
  std::function<void(std::size_t message, std::size_t piece, const std::byte* from)> unpack;
  std::function<bool()> meanwhile;  // some work while nothing arrives; false when there is none left
};

// Collective over those who send or receive. Messages of a pair match in order. Not to oneself.
void exchange_piecewise(const Communicator&, std::span<const PiecewiseMessage> sends,
                        std::span<const PiecewiseMessage> receives, const PieceWork& work, const char* label);

}  // namespace tessera::comm
