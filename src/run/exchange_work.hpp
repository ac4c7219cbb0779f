// A rank's work in an exchange of boxes, computed once.
#pragma once
#include <span>
#include <vector>

#include "comm/collectives/piecewise.hpp"
#include "run/steps.hpp"
#include "run/strided_box.hpp"

namespace tessera {

struct ExchangeBlock {
  int operand = 0;      // the operand read here (sends, local copies)
  StridedBox from, to;  // only the sides that are in this rank's memory
  std::int64_t elements = 0;
};

// The blocks sent to or received from one peer, grouped into pieces.
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

// The part of this rank's work in an exchange that is the same in every run.
struct ExchangeWork {
  std::vector<PeerMessage> sends, receives;
  std::vector<comm::PiecewiseMessage> outgoing, incoming;  // to and from the same peers
  std::vector<ExchangeBlock> local;
  std::vector<int> readers;  // peers that read this rank's memory
  std::vector<DirectSource> sources;
  std::vector<int> source_peers;
  std::int64_t received_bytes = 0;
  std::int64_t covered = 0;  // elements of the result that the pieces cover
};

// Plans the exchange that makes `output` from `inputs`: selects the pairs that read directly, and cuts the
// other boxes into pieces.
ExchangeWork plan_work(const BindContext&, const std::vector<int>& inputs, int output, const Remap&);

}  // namespace tessera
