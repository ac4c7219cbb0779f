// Steps that move boxes: reshards and remaps. One message per peer, in pieces: a piece that lies in one run
// of memory is sent from, or received into, its place; others are packed just before they leave. So a
// reshard takes the memory of source, destination and a few pieces. What consists of long runs and lies on
// the same host is not sent at all: the receiver reads it where it is.
#include <algorithm>
#include <cstring>
#include <map>
#include <span>

#include "comm/collectives/piecewise.hpp"
#include "comm/host/direct_read.hpp"
#include "comm/watch/traffic.hpp"
#include "comm/watch/waiting.hpp"
#include "kernels/move/copy.hpp"
#include "run/executable.hpp"
#include "run/strided_box.hpp"

namespace tessera {
namespace {

struct Block {
  int source = 0;  // operand number (sends, local copies)
  StridedBox source_place, destination_place;
  std::int64_t elements = 0;
};

// The blocks that go to one peer, or come from it, in groups that travel as one piece each.
struct PeerMessage {
  std::vector<Block> blocks;
  std::vector<std::size_t> piece_ends;  // piece i is blocks [piece_ends[i - 1], piece_ends[i])
  comm::PiecewiseMessage wire;          // the peer, and the bytes of each piece

  std::span<const Block> piece(std::size_t i) const {
    const std::size_t first = i == 0 ? 0 : piece_ends[i - 1];
    return {blocks.data() + first, piece_ends[i] - first};
  }
};

// Cuts a box into runs of whole rows with at most `most` elements, in the order of memory. Both ends of a
// message cut alike.
//
//   5 x 100 in pieces of 250:   rows [0, 2), [2, 4), [4, 5)
template <class F> void for_each_cut(const Index& box, std::int64_t most, F&& use, std::size_t dim = 0) {
  std::int64_t row = 1;  // elements of one index of `dim`
  for (std::size_t d = dim + 1; d < box.size(); ++d) row *= box[d].size();
  if (dim == box.size() || row * box[dim].size() <= most) return use(box);
  const std::int64_t rows = std::max<std::int64_t>(1, most / std::max<std::int64_t>(row, 1));
  Index part = box;
  for (std::int64_t start = box[dim].start; start < box[dim].stop; start += rows) {
    part[dim] = {start, std::min(start + rows, box[dim].stop)};
    for_each_cut(part, most, use, dim + 1);
  }
}

// What one peer's operands hold for this rank, to be read where it lies.
struct DirectSource {
  struct Block {
    std::size_t operand = 0;
    StridedBox there, here;
  };
  int peer = 0;
  std::vector<Block> blocks;
};

// What a pair moves in one direction, as both of them work it out.
struct PairTotals {
  static constexpr std::int64_t least_bytes = std::int64_t{64} << 10, least_run_bytes = 4096;
  std::int64_t bytes = 0, runs = 0;
  void add(const StridedBox& there, const StridedBox& here, std::size_t item) {
    bytes += there.elements * static_cast<std::int64_t>(item);
    runs += there.elements / std::max<std::int64_t>(common_run(there, here), 1);
  }
  bool is_read_directly() const { return bytes >= least_bytes && bytes >= runs * least_run_bytes; }
};

constexpr std::int64_t local_bytes = std::int64_t{16} << 20;  // copied between two looks at the messages

class ExchangeStep final : public Step {
 public:
  ExchangeStep(const BindContext& context, const Instruction& i)
      : inputs_(i.inputs),
        output_(i.outputs[0]),
        out_(context.local(output_)),
        item_(itemsize(out_.tile.dtype)),
        kind_(collective_kind(i)),
        label_(label_of(i)) {
    const Remap map = i.kind == InstructionKind::remap ? *i.remap : identity_remap(out_.tile.global);
    std::vector<Sharding> from;
    std::vector<Shape> shapes;
    std::vector<Tile> tiles;
    for (const int v : inputs_) {
      from.push_back(context.value(v).layout);
      shapes.push_back(context.value(v).type.shape);
      tiles.push_back(context.local(v).tile);
    }
    static const std::vector<int> none;
    const auto& region = context.value(inputs_[0]).region;
    const auto plan = plan_exchange(map, from, shapes, context.value(output_).layout, out_.tile.global,
                                    context.me, region ? region->manual_axes : none);
    const auto limit = std::max<std::int64_t>(1, comm::piece_limit() / static_cast<std::int64_t>(item_));
    // Where a transfer lies on both sides: the operand's tile of one rank, the result's of the other.
    const auto places = [&](const Transfer& t, int from_rank, int to_rank) {
      const auto& piece = map.pieces[t.piece];
      const auto source = static_cast<std::size_t>(piece.source);
      const Tile theirs{nullptr, out_.tile.dtype, from[source].local_box(shapes[source], from_rank),
                        shapes[source]};
      const Tile here{nullptr, out_.tile.dtype,
                      context.value(output_).layout.local_box(out_.tile.global, to_rank), out_.tile.global};
      return std::pair(source_box(theirs, piece, t.to), destination_box(here, t.to));
    };
    std::map<int, PairTotals> sent, received;
    for (const auto& t : plan.sends)
      if (comm::reads_directly(context.me, t.peer)) {
        const auto [there, here] = places(t, context.me, t.peer);
        sent[t.peer].add(there, here, item_);
      }
    for (const auto& t : plan.receives)
      if (comm::reads_directly(context.me, t.peer)) {
        const auto [there, here] = places(t, t.peer, context.me);
        received[t.peer].add(there, here, item_);
      }
    for (const auto& [peer, totals] : sent)
      if (totals.is_read_directly()) readers_.push_back(peer);
    for (const auto& [peer, totals] : received)
      if (totals.is_read_directly()) sources_.push_back({peer, {}}), source_peers_.push_back(peer);

    std::map<int, PeerMessage> sends, receives;
    for (const auto& t : plan.sends) {
      if (sent[t.peer].is_read_directly()) continue;
      const auto& piece = map.pieces[t.piece];
      for_each_cut(t.to, limit, [&](const Index& to) {
        add(sends[t.peer], limit, {piece.source, source_box(tiles[piece.source], piece, to), {}, 0});
      });
    }
    for (const auto& t : plan.receives) {
      if (received[t.peer].is_read_directly()) {
        const auto source =
            std::find(source_peers_.begin(), source_peers_.end(), t.peer) - source_peers_.begin();
        const auto [there, here] = places(t, t.peer, context.me);
        const auto operand = static_cast<std::size_t>(map.pieces[t.piece].source);
        sources_[source].blocks.push_back({operand, there, here});
        covered_ += here.elements;
        received_bytes_ += here.elements * static_cast<std::int64_t>(item_);
        continue;
      }
      for_each_cut(t.to, limit, [&](const Index& to) {
        add(receives[t.peer], limit, {0, {}, destination_box(out_.tile, to), 0});
      });
    }
    for (const auto& t : plan.local) {
      const auto& piece = map.pieces[t.piece];
      for_each_cut(t.to, local_bytes / static_cast<std::int64_t>(item_), [&](const Index& to) {
        local_.push_back(
            {piece.source, source_box(tiles[piece.source], piece, to), destination_box(out_.tile, to), 0});
        covered_ += local_.back().destination_place.elements;
      });
    }
    const auto finish = [&](std::map<int, PeerMessage>& by_peer, std::vector<PeerMessage>& list,
                            std::vector<comm::PiecewiseMessage>& wire) {
      for (auto& [peer, message] : by_peer) {
        message.wire.peer = peer;
        wire.push_back(std::move(message.wire));
        list.push_back(std::move(message));
      }
    };
    finish(sends, sends_, outgoing_);
    finish(receives, receives_, incoming_);
    for (const auto& message : receives_)
      for (const auto& block : message.blocks) covered_ += block.elements;
    for (const auto& message : incoming_)
      for (const auto bytes : message.pieces) received_bytes_ += bytes;
    fill_ = i.fill;
  }

  void run(Frame& frame) override {
    auto& result = frame.slots[output_];
    if (out_.holds) result = Buffer::allocate(out_.bytes);
    if (out_.holds && covered_ < out_.tile.elements()) fill(result);
    if (!sends_.empty() || !receives_.empty() || !readers_.empty() || !sources_.empty()) {
      const comm::Purpose purpose(label_);
      std::size_t copied = 0;  // of the local blocks
      if (!readers_.empty() || !sources_.empty()) read_directly(frame, result, copied);
      exchange(frame, result, copied);
      if (!kind_.empty()) comm::count(kind_, received_bytes_);
    } else {
      for (const auto& block : local_) copy_local(frame, result, block);
      if (!kind_.empty() && kind_ != "all-slice") comm::count(kind_, 0);
    }
  }

 private:
  // Small blocks share a piece.
  void add(PeerMessage& message, std::int64_t limit, Block block) {
    block.elements = std::max(block.source_place.elements, block.destination_place.elements);
    const std::int64_t bytes = block.elements * static_cast<std::int64_t>(item_);
    auto& pieces = message.wire.pieces;
    if (pieces.empty() || pieces.back() + bytes > limit * static_cast<std::int64_t>(item_)) {
      pieces.push_back(0);
      message.piece_ends.push_back(message.blocks.size());
    }
    pieces.back() += bytes;
    message.piece_ends.back() = message.blocks.size() + 1;
    message.blocks.push_back(std::move(block));
  }

  void fill(Buffer& result) const {
    if (fill_.empty())
      std::memset(result.data(), 0, out_.bytes);
    else
      kernels::fill(result.data(), fill_.data(), item_, out_.tile.elements());
  }

  std::byte* at(std::byte* data, const StridedBox& r) const {
    return data + r.offset * static_cast<std::int64_t>(item_);
  }

  void copy_local(Frame& frame, Buffer& result, const Block& block) const {
    const auto& from = frame.slots[inputs_[block.source]];
    kernels::copy_strided(at(result.data(), block.destination_place), block.destination_place.strides,
                          at(from.data(), block.source_place), block.source_place.strides,
                          block.destination_place.extents, item_);
  }

  void read_directly(Frame& frame, Buffer& result, std::size_t& copied) const {
    std::vector<std::uint64_t> operands;
    for (const int v : inputs_) operands.push_back(reinterpret_cast<std::uint64_t>(frame.slots[v].data()));
    comm::DirectWork work;
    work.meanwhile = [&] {
      while (copied < local_.size()) copy_local(frame, result, local_[copied++]);
    };
    work.read = [&](std::size_t source, std::span<const std::uint64_t> theirs, comm::DirectReader& reader) {
      for (const auto& block : sources_[source].blocks)
        for_each_run(block.there, block.here,
                     [&](std::int64_t there, std::int64_t here, std::int64_t elements) {
                       reader.add(theirs[block.operand] + static_cast<std::uint64_t>(there) * item_,
                                  result.data() + here * static_cast<std::int64_t>(item_),
                                  static_cast<std::size_t>(elements) * item_);
                     });
    };
    comm::exchange_by_reading(comm::world(), operands, readers_, source_peers_, work, label_.c_str());
  }

  void exchange(Frame& frame, Buffer& result, std::size_t& copied) const {
    const auto data_of = [&](const Block& block) { return frame.slots[inputs_[block.source]].data(); };
    comm::PieceWork work;
    work.source = [&](std::size_t m, std::size_t p) -> const std::byte* {
      const auto blocks = sends_[m].piece(p);
      return blocks.size() == 1 && blocks[0].source_place.contiguous
                 ? at(data_of(blocks[0]), blocks[0].source_place)
                 : nullptr;
    };
    work.destination = [&](std::size_t m, std::size_t p) -> std::byte* {
      const auto blocks = receives_[m].piece(p);
      return blocks.size() == 1 && blocks[0].destination_place.contiguous
                 ? at(result.data(), blocks[0].destination_place)
                 : nullptr;
    };
    work.pack = [&](std::size_t m, std::size_t p, std::byte* to) {
      for (const auto& block : sends_[m].piece(p)) {
        const auto& place = block.source_place;
        kernels::copy_strided(to, row_major_strides(place.extents), at(data_of(block), place), place.strides,
                              place.extents, item_);
        to += block.elements * static_cast<std::int64_t>(item_);
      }
    };
    work.unpack = [&](std::size_t m, std::size_t p, const std::byte* from) {
      for (const auto& block : receives_[m].piece(p)) {
        const auto& place = block.destination_place;
        kernels::copy_strided(at(result.data(), place), place.strides, from, row_major_strides(place.extents),
                              place.extents, item_);
        from += block.elements * static_cast<std::int64_t>(item_);
      }
    };
    work.meanwhile = [&] {
      if (copied < local_.size()) copy_local(frame, result, local_[copied++]);
      return copied < local_.size();
    };
    comm::exchange_piecewise(comm::world(), outgoing_, incoming_, work, label_.c_str());
  }

  std::vector<int> inputs_;
  int output_;
  LocalValue out_;
  std::size_t item_;
  std::string kind_, label_;
  std::vector<PeerMessage> sends_, receives_;
  std::vector<comm::PiecewiseMessage> outgoing_, incoming_;
  std::vector<Block> local_;
  std::vector<int> readers_, source_peers_;
  std::vector<DirectSource> sources_;
  std::vector<std::byte> fill_;
  std::int64_t received_bytes_ = 0, covered_ = 0;
};

}  // namespace

std::unique_ptr<Step> bind_exchange(const BindContext& context, const Instruction& i) {
  return std::make_unique<ExchangeStep>(context, i);
}

}  // namespace tessera
