// The work of a rank in an exchange of boxes, computed once.
#pragma once
#include <span>
#include <vector>

#include "comm/collectives/piecewise.hpp"
#include "run/steps.hpp"
#include "run/strided_box.hpp"

namespace tessera {

struct ExchangeBlock {
  int operand = 0;      // that is read here (sends, local copies)
  StridedBox from, to;  // as far as they are in this rank's memory
  std::int64_t elements = 0;
};

// The blocks that go to one peer, or come from it, in groups that travel as one piece each.
struct PeerMessage {
  std::vector<ExchangeBlock> blocks;
  std::vector<std::size_t> piece_ends;  // piece i is blocks [piece_ends[i - 1], piece_ends[i])
  comm::PiecewiseMessage wire;          // the peer, and the bytes of each piece

  std::span<const ExchangeBlock> piece(std::size_t i) const {
    const std::size_t first = i == 0 ? 0 : piece_ends[i - 1];
    return {blocks.data() + first, piece_ends[i] - first};
  }
};

// The operands of one peer that this rank reads in place.
struct DirectSource {
  struct Block {
    std::size_t operand = 0;
    StridedBox there, here;
  };
  int peer = 0;
  std::vector<Block> blocks;
};

// The part of this rank's work in an exchange that is the same every time.
struct ExchangeWork {
  std::vector<PeerMessage> sends, receives;
  std::vector<comm::PiecewiseMessage> outgoing, incoming;  // of the same peers
  std::vector<ExchangeBlock> local;
  std::vector<int> readers;  // peers that read here
  std::vector<DirectSource> sources;
  std::vector<int> source_peers;
  std::int64_t received_bytes = 0;
  std::int64_t covered = 0;  // elements of the result that some piece covers
};

// The work of the exchange that makes `output` from `inputs`: which pairs read directly, how the others'
// boxes are cut into pieces.
ExchangeWork plan_work(const BindContext&, const std::vector<int>& inputs, int output, const Remap&);

}  // namespace tessera
